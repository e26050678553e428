/* ended - see ended.h. */
#include "peers/host/ended.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

uint64_t ended_oom_kills(void)
{
	static const char key[] = "oom_kill ";
	unsigned long long nr = 0;
	FILE *in = fopen("/proc/vmstat", "re");
	char line[128];

	if (!in)
		return 0;
	while (fgets(line, sizeof(line), in))
		if (!strncmp(line, key, sizeof(key) - 1))
			nr = strtoull(line + sizeof(key) - 1, NULL, 10);
	fclose(in);
	return nr;
}

/* Since the last such death, or the supervisor's begin. */
static bool memory_ran_out(uint64_t *oom_kills)
{
	uint64_t before = *oom_kills;

	*oom_kills = ended_oom_kills();
	return *oom_kills > before;
}

void ended_how(uint64_t *oom_kills, int status, char how[ENDED_HOW_MAX])
{
	if (WIFSIGNALED(status))
		snprintf(how, ENDED_HOW_MAX, "was killed by signal %d%s", WTERMSIG(status),
			 WTERMSIG(status) == SIGKILL && memory_ran_out(oom_kills)
				 ? ", perhaps by the kernel because memory ran out" : "");
	else
		snprintf(how, ENDED_HOW_MAX, "ended with exit code %d", WEXITSTATUS(status));
}
