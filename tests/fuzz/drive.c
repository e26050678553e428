/* drive - replays inputs, one after the other, without libFuzzer.
 *
 *      fuzz_NAME FILE|FOLDER...	prints how many it played; one that goes wrong ends the
 *      program
 *
 * An input that does not end within INPUT_SECONDS is killed by SIGALRM. The name of each input is
 * printed before its replay, if $FUZZ_VERBOSE is set.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

#define INPUT_SECONDS 60
#define INPUT_MAX     (1u << 20)

static unsigned nr_played;

/* In a block of just its size: what is read behind it is seen. */
static uint8_t *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "re");
	uint8_t *room = malloc(INPUT_MAX), *data = NULL;

	*size = f && room ? fread(room, 1, INPUT_MAX, f) : 0;
	if (f && room)
		data = malloc(*size ? *size : 1);
	if (data)
		memcpy(data, room, *size);
	if (f)
		fclose(f);
	free(room);
	return data;
}

static int play_file(const char *path)
{
	size_t size;
	uint8_t *data = read_file(path, &size);

	if (!data) {
		fprintf(stderr, "%s: cannot be read\n", path);
		return 1;
	}
	if (getenv("FUZZ_VERBOSE"))
		fprintf(stderr, "%s\n", path);
	alarm(INPUT_SECONDS);
	fuzz_one(data, size);
	alarm(0);
	free(data);
	nr_played++;
	return 0;
}

static int play(const char *path);

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int play_folder(const char *path)
{
	struct dirent **entry;
	char inside[4096];
	int nr = scandir(path, &entry, NULL, by_name), failed = nr < 0;

	for (int i = 0; i < nr; i++) {
		snprintf(inside, sizeof(inside), "%s/%s", path, entry[i]->d_name);
		if (entry[i]->d_name[0] != '.')
			failed |= play(inside);
		free(entry[i]);
	}
	if (nr >= 0)
		free(entry);
	return failed;
}

static int play(const char *path)
{
	struct stat st;

	if (stat(path, &st)) {
		fprintf(stderr, "%s: is not there\n", path);
		return 1;
	}
	return S_ISDIR(st.st_mode) ? play_folder(path) : play_file(path);
}

int main(int argc, char **argv)
{
	int failed = argc < 2;

	for (int i = 1; i < argc; i++)
		failed |= play(argv[i]);
	printf("%u inputs played\n", nr_played);
	return failed || nr_played == 0;
}
