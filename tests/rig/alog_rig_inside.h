/* alog_rig_inside - shared by the two files of the rig. */
#ifndef TESTS_RIG_ALOG_RIG_INSIDE_H
#define TESTS_RIG_ALOG_RIG_INSIDE_H

#include "tests/rig/alog_rig.h"

void ar_fail(const struct ar *a, const char *what, uint64_t n) __attribute__((noreturn));
void ar_may_die(struct ar *a);
const void *ar_page_at(struct ar *a, uint32_t page);
void ar_answer_lent(struct ar *a);		/* what is written; its pages get other contents */
void ar_arrive(struct ar *a, struct alog_io *io);
void ar_withdraw(struct ar *a);			/* of a process that is dead */
void ar_store_cut(struct ar *a);
void ar_store_free(struct ar *a);

#endif
