/* tree - a directory of a test's, taken away with all that is in it; no other file system that is
 * mounted there is entered. What is not there is no error. */
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
