/* rival_leveldb.c - LevelDB for rival_lsm.c: no compression, blocks of 4 KiB, an LRU cache of
 * --cache, a log that is not synced. It cannot read past the page cache. Compiled to nothing where
 * its header is not there. */
#if __has_include(<leveldb/c.h>)
#include <leveldb/c.h>
#include <stdlib.h>

#include "bench/rivals/rival.h"

struct db {
	leveldb_t *db;
	leveldb_options_t *options;
	leveldb_readoptions_t *reading;
	leveldb_writeoptions_t *writing;
};

static leveldb_options_t *make_options(const struct rival_options *o)
{
	leveldb_options_t *options = leveldb_options_create();

	leveldb_options_set_block_size(options, VALUE_BYTES);
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

static void db_close(void *db)
{
	struct db *d = db;

	leveldb_close(d->db);
	leveldb_options_destroy(d->options);
	leveldb_readoptions_destroy(d->reading);
	leveldb_writeoptions_destroy(d->writing);
	free(d);
}

const struct rival_store rival_store = {
	.name = "LevelDB", .open = db_open, .put = db_put, .get = db_get, .release = leveldb_free,
	.close = db_close
};
#else
typedef int rival_no_leveldb;
#endif
