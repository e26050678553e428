/* rival_lmdb.c - LMDB for rival_lib.c: a map of files that is read in place, one writer at a time,
 * a commit for each put. Without --force a commit is not synced (MDB_NOSYNC). The page cache is its
 * cache. Compiled to nothing where its header is not there. */
#if __has_include(<lmdb.h>)
#include <lmdb.h>
#include <stdlib.h>
#include <string.h>

#include "bench/rivals/rival.h"

#define MAP_BYTES (UINT64_C(64) << 30)

struct db {
	MDB_env *env;
	MDB_dbi dbi;
};

static int fails(int rc, char **why)
{
	if (rc)
		*why = strdup(mdb_strerror(rc));
	return rc ? 1 : 0;
}

static int make(const struct rival_options *o, struct db *d)
{
	unsigned flags = MDB_NOTLS | (o->force ? 0 : MDB_NOSYNC);
	MDB_txn *txn;
	int rc = mdb_env_create(&d->env);

	if (!rc)
		rc = mdb_env_set_mapsize(d->env, MAP_BYTES);
	if (!rc)
		rc = mdb_env_set_maxreaders(d->env, MAX_THREADS + 1);
	if (!rc)
		rc = mdb_env_open(d->env, o->path, flags, 0600);
	if (!rc)
		rc = mdb_txn_begin(d->env, NULL, 0, &txn);
	if (rc)
		return rc;
	rc = mdb_dbi_open(txn, NULL, 0, &d->dbi);
	if (!rc)
		return mdb_txn_commit(txn);
	mdb_txn_abort(txn);
	return rc;
}

static void db_close(void *db)
{
	struct db *d = db;

	mdb_env_close(d->env);
	free(d);
}

static void *db_open(const struct rival_options *o, char **why)
{
	struct db *d = calloc(1, sizeof(*d));

	if (!d || !fails(make(o, d), why))
		return d;
	db_close(d);
	return NULL;
}

static int db_put(
	void *db, const char *key, size_t key_len, const void *value, size_t bytes, char **why)
{
	struct db *d = db;
	MDB_val k = { key_len, (void *)(uintptr_t)key }, v = { bytes, (void *)(uintptr_t)value };
	MDB_txn *txn;
	int rc = mdb_txn_begin(d->env, NULL, 0, &txn);

	if (rc)
		return fails(rc, why);
	rc = mdb_put(txn, d->dbi, &k, &v, 0);
	if (!rc)
		return fails(mdb_txn_commit(txn), why);
	mdb_txn_abort(txn);
	return fails(rc, why);
}

static int db_get(
	void *db, const char *key, size_t key_len, char **value, size_t *bytes, char **why)
{
	struct db *d = db;
	MDB_val k = { key_len, (void *)(uintptr_t)key }, v;
	MDB_txn *txn;
	int rc = mdb_txn_begin(d->env, NULL, MDB_RDONLY, &txn);

	*value = NULL;
	if (rc)
		return fails(rc, why);
	rc = mdb_get(txn, d->dbi, &k, &v);
	if (!rc) {
		*bytes = v.mv_size;
		*value = malloc(v.mv_size + 1);
		if (*value)
			memcpy(*value, v.mv_data, v.mv_size);
	}
	mdb_txn_abort(txn);
	return rc == MDB_NOTFOUND ? 0 : fails(rc, why);
}

static int db_scan(void *db, void (*visit)(void *arg, const char *value, size_t bytes), void *arg,
	char **why)
{
	struct db *d = db;
	MDB_val k, v;
	MDB_cursor *cursor;
	MDB_txn *txn;
	int rc = mdb_txn_begin(d->env, NULL, MDB_RDONLY, &txn);

	if (rc)
		return fails(rc, why);
	rc = mdb_cursor_open(txn, d->dbi, &cursor);
	if (!rc) {
		while (!(rc = mdb_cursor_get(cursor, &k, &v, MDB_NEXT)))
			visit(arg, v.mv_data, v.mv_size);
		mdb_cursor_close(cursor);
	}
	mdb_txn_abort(txn);
	return rc == MDB_NOTFOUND ? 0 : fails(rc, why);
}

const struct rival_lib rival_lib = {
	.name = "LMDB", .open = db_open, .put = db_put, .get = db_get, .release = free,
	.scan = db_scan, .close = db_close
};
#else
typedef int rival_no_lmdb;
#endif
