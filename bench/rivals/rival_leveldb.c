/* rival_leveldb.c - LevelDB for rival_lib.c: no compression, blocks of 4 KiB, an LRU cache of
 * --cache, a log that is not synced. It cannot read past the page cache. Compiled to nothing where
 * its header is not there. */
#if __has_include(<leveldb/c.h>)
#include <leveldb/c.h>
#include <stdlib.h>

#include "bench/rivals/rival.h"

#define BLOCK_BYTES 4096

static leveldb_options_t *make_options(const struct rival_options *o)
{
	leveldb_options_t *options = leveldb_options_create();

	leveldb_options_set_block_size(options, BLOCK_BYTES);
	leveldb_options_set_cache(options, leveldb_cache_create_lru(o->cache));
	leveldb_options_set_create_if_missing(options, 1);
	leveldb_options_set_compression(options, leveldb_no_compression);
	return options;
}

#define LIBRARY(name) leveldb_##name
#define LIBRARY_NAME  "LevelDB"
#include "bench/rivals/rival_tables.def"
#else
typedef int rival_no_leveldb;
#endif
