/* rival_rocksdb.c - RocksDB for rival_lib.c: no compression, blocks of 4 KiB, an LRU cache of
 * --cache, a log that is not synced, background work in two threads. Compiled to nothing where its
 * header is not there. */
#if __has_include(<rocksdb/c.h>)
#include <rocksdb/c.h>
#include <stdlib.h>

#include "bench/rivals/rival.h"

#define BLOCK_BYTES 4096

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

#define LIBRARY(name) rocksdb_##name
#define LIBRARY_NAME  "RocksDB"
#include "bench/rivals/rival_tables.def"
#else
typedef int rival_no_rocksdb;
#endif
