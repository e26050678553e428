/* rival_rocksdb.c - RocksDB for rival_lib.c: no compression, blocks of 4 KiB, an LRU cache of
 * --cache, a log that is not synced, background work in two threads. Compiled to nothing where its
 * header is not there. */
#if __has_include(<rocksdb/c.h>)
#include <rocksdb/c.h>
#include <stdlib.h>

#include "bench/rivals/rival.h"

#define BLOCK_BYTES 4096

struct db {
	rocksdb_t *db;
	rocksdb_options_t *options;
	rocksdb_readoptions_t *reading;
	rocksdb_writeoptions_t *writing;
};

static rocksdb_options_t *make_options(const struct rival_options *o)
{
	rocksdb_options_t *options = rocksdb_options_create();
	rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();

	rocksdb_block_based_options_set_block_size(table, BLOCK_BYTES);
	rocksdb_block_based_options_set_block_cache(table, rocksdb_cache_create_lru(o->cache));
	rocksdb_options_set_block_based_table_factory(options, table);
	rocksdb_options_set_create_if_missing(options, 1);
	rocksdb_options_set_compression(options, rocksdb_no_compression);
	rocksdb_options_increase_parallelism(options, 2);
	rocksdb_options_set_use_direct_reads(options, o->direct);
	rocksdb_options_set_use_direct_io_for_flush_and_compaction(options, o->direct);
	return options;
}

static void *db_open(const struct rival_options *o, char **why)
{
	struct db *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->options = make_options(o);
	d->reading = rocksdb_readoptions_create();
	d->writing = rocksdb_writeoptions_create();
	rocksdb_writeoptions_set_sync(d->writing, o->force);
	d->db = rocksdb_open(d->options, o->path, why);
	if (d->db)
		return d;
	free(d);
	return NULL;
}

static int db_put(
	void *db, const char *key, size_t key_len, const void *value, size_t bytes, char **why)
{
	struct db *d = db;

	rocksdb_put(d->db, d->writing, key, key_len, value, bytes, why);
	return *why ? 1 : 0;
}

static int db_get(
	void *db, const char *key, size_t key_len, char **value, size_t *bytes, char **why)
{
	struct db *d = db;

	*value = rocksdb_get(d->db, d->reading, key, key_len, bytes, why);
	return *why ? 1 : 0;
}

static int db_scan(void *db, void (*visit)(void *arg, const char *value, size_t bytes), void *arg,
	char **why)
{
	struct db *d = db;
	rocksdb_iterator_t *i = rocksdb_create_iterator(d->db, d->reading);

	for (rocksdb_iter_seek_to_first(i); rocksdb_iter_valid(i); rocksdb_iter_next(i)) {
		size_t bytes;
		const char *value = rocksdb_iter_value(i, &bytes);

		visit(arg, value, bytes);
	}
	rocksdb_iter_get_error(i, why);
	rocksdb_iter_destroy(i);
	return *why ? 1 : 0;
}

static void db_close(void *db)
{
	struct db *d = db;

	rocksdb_close(d->db);
	rocksdb_options_destroy(d->options);
	rocksdb_readoptions_destroy(d->reading);
	rocksdb_writeoptions_destroy(d->writing);
	free(d);
}

const struct rival_lib rival_lib = {
	.name = "RocksDB", .open = db_open, .put = db_put, .get = db_get, .release = rocksdb_free,
	.scan = db_scan, .close = db_close
};
#else
typedef int rival_no_rocksdb;
#endif
