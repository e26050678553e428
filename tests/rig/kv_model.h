/* kv_model - the model of kvd: see kv_rig.h. */
#ifndef TESTS_UNIT_KV_MODEL_H
#define TESTS_UNIT_KV_MODEL_H

#include "peers/common/runtime/peer.h"

/* Its data outlives the peer, as a log does. */
extern const struct peer_class kvmodel_class;
void kvmodel_forget(void);
struct kvmodel *kvmodel_get(void);

#endif
