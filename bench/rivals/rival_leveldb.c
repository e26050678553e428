/* rival_leveldb.c - LevelDB for rival_lib.c: no compression, blocks of 4 KiB, an LRU cache of
 * --cache, a log that is not synced. It cannot read past the page cache. Compiled to nothing where
 * its header is not there. */
#if __has_include(<leveldb/c.h>)
#include <leveldb/c.h>
#include <stdlib.h>

#include "bench/rivals/rival.h"

#define BLOCK_BYTES 4096

struct db {
	leveldb_t *db;
	leveldb_options_t *options;
	leveldb_readoptions_t *reading;
	leveldb_writeoptions_t *writing;
};

static leveldb_options_t *make_options(const struct rival_options *o)
{
	leveldb_options_t *options = leveldb_options_create();

	leveldb_options_set_block_size(options, BLOCK_BYTES);
	leveldb_options_set_cache(options, leveldb_cache_create_lru(o->cache));
	leveldb_options_set_create_if_missing(options, 1);
	leveldb_options_set_compression(options, leveldb_no_compression);
	return options;
}

static void *db_open(const struct rival_options *o, char **why)
{
	struct db *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->options = make_options(o);
	d->reading = leveldb_readoptions_create();
	d->writing = leveldb_writeoptions_create();
	leveldb_writeoptions_set_sync(d->writing, o->force);
	d->db = leveldb_open(d->options, o->path, why);
	if (d->db)
		return d;
	free(d);
	return NULL;
}

static int db_put(
	void *db, const char *key, size_t key_len, const void *value, size_t bytes, char **why)
{
	struct db *d = db;

	leveldb_put(d->db, d->writing, key, key_len, value, bytes, why);
	return *why ? 1 : 0;
}

static int db_get(
	void *db, const char *key, size_t key_len, char **value, size_t *bytes, char **why)
{
	struct db *d = db;

	*value = leveldb_get(d->db, d->reading, key, key_len, bytes, why);
	return *why ? 1 : 0;
}

static int db_scan(void *db, void (*visit)(void *arg, const char *value, size_t bytes), void *arg,
	char **why)
{
	struct db *d = db;
	leveldb_iterator_t *i = leveldb_create_iterator(d->db, d->reading);

	for (leveldb_iter_seek_to_first(i); leveldb_iter_valid(i); leveldb_iter_next(i)) {
		size_t bytes;
		const char *value = leveldb_iter_value(i, &bytes);

		visit(arg, value, bytes);
	}
	leveldb_iter_get_error(i, why);
	leveldb_iter_destroy(i);
	return *why ? 1 : 0;
}

static void db_close(void *db)
{
	struct db *d = db;

	leveldb_close(d->db);
	leveldb_options_destroy(d->options);
	leveldb_readoptions_destroy(d->reading);
	leveldb_writeoptions_destroy(d->writing);
	free(d);
}

const struct rival_lib rival_lib = {
	.name = "LevelDB", .open = db_open, .put = db_put, .get = db_get, .release = leveldb_free,
	.scan = db_scan, .close = db_close
};
#else
typedef int rival_no_leveldb;
#endif
