/* notify - see notify.h. */
#include "tools/xseg/base/notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TEXT_BYTES 1024

/* The length of the address; 0: there is no manager. */
static socklen_t find_manager(struct sockaddr_un *address)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path ? strlen(path) : 0;

	if (len < 2 || len >= sizeof(address->sun_path) || (*path != '/' && *path != '@'))
		return 0;
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(address->sun_path, path, len);
	if (*path == '@')
		address->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

void notify_send(const char *fmt, ...)
{
	struct sockaddr_un address;
	socklen_t size = find_manager(&address);
	char text[TEXT_BYTES];
	va_list ap;
	int fd, len;

	if (!size)
		return;
	va_start(ap, fmt);
	len = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (len > 0 && len < (int)sizeof(text))
		(void)!sendto(fd, text, (size_t)len, MSG_NOSIGNAL,
			(const struct sockaddr *)&address, size);
	close(fd);
}
