/* tree - a test's directory, removed with all its contents. No other file system that is mounted
 * there is entered. A missing directory is no error.
 */
#ifndef TESTS_UNIT_TREE_H
#define TESTS_UNIT_TREE_H

#include <ftw.h>
#include <stdio.h>

static inline int tree_remove_one(
	const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static inline void remove_tree(const char *path)
{
	nftw(path, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

#endif
