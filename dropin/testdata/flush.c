// ATOMIC WRITE and FLUSH by ibv_wr_atomic_write and ibv_wr_flush. Headers before rdma-core 46 lack the second, which is
// the function pointer behind the first. Prints ok.
#include "pair.h"

enum { WITH_FLUSH = 1 << 11, ACCESS_FLUSH_GLOBAL = 1 << 8, ACCESS_FLUSH_PERSISTENT = 1 << 9, FLUSH_GLOBAL = 1, FLUSH_PERSISTENT = 2,
       FLUSH_RANGE = 0, FLUSH_MR = 1, WC_FLUSH = 8 };

typedef void (*flush_function)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t length, uint8_t type, uint8_t level);

static flush_function flush_of(struct ibv_qp_ex *qp)
{
	return *(flush_function *)((char *)qp + offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(void *));
}

// allow gives the peer of a queue pair in state RTS more access.
static void allow(struct ibv_qp *qp, unsigned int access)
{
	struct ibv_qp_attr attr;
	memset(&attr, 0, sizeof attr);
	attr.qp_access_flags = access;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_ACCESS_FLAGS));
}

int main(void)
{
	struct ibv_context *context = open_first();
	struct ibv_device_attr_ex device;
	CHECK(!ibv_query_device_ex(context, NULL, &device));
	CHECK((device.device_cap_flags_ex >> 38 & 7) == 5); // without FLUSH_PERSISTENT
	struct ibv_pd *pd = ibv_alloc_pd(context);
	static uint64_t memory[16];
	CHECK(!ibv_reg_mr(pd, memory, sizeof memory, ALL_ACCESS | ACCESS_FLUSH_PERSISTENT) && errno == EINVAL);
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof memory, ALL_ACCESS | ACCESS_FLUSH_GLOBAL);
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	CHECK(pd && mr && cq);
	struct ibv_qp_init_attr_ex attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1, .cap = {8, 1, 1, 1, 0},
					   .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .pd = pd,
					   .send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE | WITH_FLUSH | IBV_QP_EX_WITH_RDMA_WRITE};
	struct ibv_qp *qp = ibv_create_qp_ex(context, &attr), *peer = create_qp(pd, cq, NULL, IBV_QPT_RC, 4);
	CHECK(qp && peer);
	connect_qps(qp, peer);
	allow(peer, ALL_ACCESS | ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	uint64_t word = 0x1122334455667788;
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ibv_wr_atomic_write(ex, mr->rkey, (uintptr_t)&memory[2], &word);
	word = 0; // it is copied
	ex->wr_id = 2;
	flush_of(ex)(ex, mr->rkey, (uintptr_t)&memory[2], 8, FLUSH_GLOBAL, FLUSH_RANGE);
	ex->wr_id = 3;
	flush_of(ex)(ex, mr->rkey, 0, 0, FLUSH_GLOBAL, FLUSH_MR);
	CHECK(!ibv_wr_complete(ex));
	static const int opcodes[] = {IBV_WC_ATOMIC_WRITE, WC_FLUSH, WC_FLUSH};
	struct ibv_wc wc;
	for (int i = 0; i < 3; i++) {
		CHECK(!poll_one(cq, &wc));
		CHECK(wc.wr_id == (uint64_t)i + 1 && (int)wc.opcode == opcodes[i]);
	}
	CHECK(memory[2] == 0x1122334455667788);

	ibv_wr_start(ex);
	flush_of(ex)(ex, mr->rkey, 0, 1ull << 32, FLUSH_GLOBAL, FLUSH_RANGE);
	CHECK(ibv_wr_complete(ex) == EINVAL);
	ibv_wr_start(ex);
	flush_of(ex)(ex, mr->rkey, 0, 8, 0, FLUSH_RANGE);
	CHECK(ibv_wr_complete(ex) == EINVAL);

	ibv_wr_start(ex); // the region does not permit it
	flush_of(ex)(ex, mr->rkey, (uintptr_t)memory, 8, FLUSH_PERSISTENT, FLUSH_RANGE);
	CHECK(!ibv_wr_complete(ex));
	CHECK(poll_one(cq, &wc) == IBV_WC_REM_ACCESS_ERR);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_qp(peer) && !ibv_destroy_cq(cq));
	CHECK(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) && !ibv_close_device(context));
	puts("ok");
	return 0;
}
