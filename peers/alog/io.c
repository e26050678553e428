/* io - the log's requests: a fixed number, their targets and pages, and sending.
 *
 * Contract: see inside.h. A request that the user cannot send now is marked, and sent at the next
 * poll.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "peers/alog/inside.h"
#include "peers/common/options/hex.h"

struct io *io_get(struct alog *l, enum io_kind kind)
{
	struct io *io = l->io_free;

	if (!io)
		return NULL;
	l->io_free = io->next;
	memset(io, 0, sizeof(*io));
	io->kind = (uint8_t)kind;
	l->io_out[kind]++;
	return io;
}

void io_put(struct alog *l, struct io *io)
{
	assert(l->io_out[io->kind] > 0);
	l->io_out[io->kind]--;
	io->next = l->io_free;
	l->io_free = io;
}

/* Made for each request. */
static void zone_name(char to[XSEG_TARGET_MAX], const char *prefix, uint64_t zone)
{
	size_t bytes = strlen(prefix);

	*to++ = '+';
	memcpy(to, prefix, bytes);
	to[bytes] = ':';
	hex_digits(to + bytes + 1, zone);
	to[bytes + 1 + HEX_DIGITS] = 0;
}

void io_target(struct alog *l, struct io *io, uint64_t zone)
{
	zone_name(io->pub.target, l->cfg.prefix, zone);
}

uint64_t alog_zone_of(const struct alog_config *cfg, const char *target)
{
	char name[XSEG_TARGET_MAX];
	const char *digits = strrchr(target, ':');
	uint64_t id = digits ? strtoull(digits + 1, NULL, 16) : 0;

	zone_name(name, cfg->prefix, id);
	return strcmp(name, target) == 0 ? id : 0;
}

void io_page(struct io *io, uint32_t page)
{
	assert(io->pub.nr_pages < ALOG_IO_PAGES);
	io->pub.page[io->pub.nr_pages++] = page;
	io->pub.size += ALOG_PAGE;
}

void io_pages(struct alog *l, struct io *io, uint8_t *at, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i += ALOG_PAGE)
		io_page(io, l->user.page(l->user.ctx, at + i));
}

void io_send(struct alog *l, struct io *io)
{
	l->io_wanted -= io->wanted;
	io->wanted = !l->user.send(l->user.ctx, &io->pub);
	l->io_wanted += io->wanted;
}

void io_retry(struct alog *l)
{
	for (uint32_t i = 0; i < ALOG_IOS && l->io_wanted; i++)
		if (l->io[i].wanted)
			io_send(l, &l->io[i]);
}
