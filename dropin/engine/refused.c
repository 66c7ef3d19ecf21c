// Public functions of features that this adapter does not have. They must exist: the real ones read
// private words of rdma-core behind our objects.
#include "engine.h"

#include <stddef.h>

struct ibv_mr *API(ibv_reg_dmabuf_mr)(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	(void)pd, (void)offset, (void)length, (void)iova, (void)fd, (void)access;
	return fail_null(EOPNOTSUPP);
}

int API(ibv_query_ece)(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	*ece = (struct ibv_ece){};
	return EOPNOTSUPP;
}

int API(ibv_set_ece)(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp, (void)ece;
	return fail(EOPNOTSUPP);
}

// ibv_query_qp_data_in_order answers no: only the last word of a write is promised to come last.
int API(ibv_query_qp_data_in_order)(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t flags)
{
	(void)qp, (void)opcode, (void)flags;
	return 0;
}

int API(ibv_resolve_eth_l2_from_gid)(struct ibv_context *context, struct ibv_ah_attr *attr, uint8_t mac[6], uint16_t *vid)
{
	(void)context, (void)attr, (void)mac, (void)vid;
	return fail(EOPNOTSUPP); // there are no Ethernet headers below a UDP socket
}
