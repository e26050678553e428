/* stack_keys - see stack_keys.h. */
#include "tools/xseg/base/stack_keys.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peers/common/options/opt.h"
#include "tools/xseg/base/proc.h"
#include "tools/xseg/base/tool.h"

static void add_line(struct stack_keys *k, char *line)
{
	struct stack_key *key = &k->key[k->nr];

	if (!*line || k->nr == STACK_KEYS_MAX)
		return;
	key->section = proc_word(&line);
	key->name = proc_word(&line);
	key->arg = proc_word(&line);
	key->limits = proc_word(&line);
	key->def = proc_word(&line);
	key->flags = proc_word(&line);
	key->help = proc_word(&line);
	k->nr++;
}

bool stack_keys_load(struct stack_keys *k)
{
	char path[PATH_MAX], *rest, *line;

	*k = (struct stack_keys){ 0 };
	if (tool_program("xseg-host", path, sizeof(path)) ||
		proc_run_read((char *[]){ path, "--keys", NULL }, STDIN_FILENO, NULL, &k->text))
		return false;
	rest = k->text;
	while (rest && (line = strsep(&rest, "\n")))
		add_line(k, line);
	return k->nr > 0;
}

void stack_keys_drop(struct stack_keys *k)
{
	free(k->text);
}

const struct stack_key *stack_keys_find(
	const struct stack_keys *k, const char *section, const char *name)
{
	for (unsigned i = 0; i < k->nr; i++)
		if (!strcmp(k->key[i].section, section) && opt_same_name(k->key[i].name, name))
			return &k->key[i];
	return NULL;
}

bool stack_key_is_live(const struct stack_key *key)
{
	return strchr(key->flags, 'l');
}

bool stack_key_is_fixed(const struct stack_key *key)
{
	return strchr(key->flags, 'f');
}
