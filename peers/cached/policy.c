/* policy - the table of write policies: one file each, chosen by option `policy`. */
#include "peers/cached/cached.h"

const struct policy *const policies[] = { &policy_write_back, &policy_write_through };
