// Batches of requests by ibv_wr_start that fail, and completions that cannot be stored. Prints the number of lines, after
// those whose error differs.
#include "judge.h"
#include "pair.h"

#include <sys/mman.h>

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static char memory[4096] __attribute__((aligned(4096)));
static char *unmapped; // a page without access

// test_batches checks that the requests of an ibv_wr_start that fails leave no trace.
static void test_batches(void)
{
	struct ibv_cq *mine = ibv_create_cq(context, 64, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex attr = {.send_cq = mine, .recv_cq = mine, .qp_type = IBV_QPT_RC, .sq_sig_all = 1, .cap = {20, 4, 2, 2, 64},
					   .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .pd = pd,
					   .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE};
	struct ibv_qp *qp = ibv_create_qp_ex(context, &attr), *peer = create_qp(pd, mine, NULL, IBV_QPT_RC, 4);
	CHECK(mine && qp && peer);
	connect_qps(qp, peer);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	struct ibv_sge sges[3] = {{(uintptr_t)memory, 8, mr->lkey}, {(uintptr_t)memory, 8, mr->lkey}, {(uintptr_t)memory, 8, mr->lkey}};
	static const struct { int requests, elements, error; } batches[] = {{40, 1, ENOMEM}, {18, 3, EINVAL}, {18, 1, 0}};
	for (int i = 0; i < 3; i++) {
		ibv_wr_start(ex);
		for (int k = 1; k <= batches[i].requests; k++) {
			ex->wr_id = 100 * i + k;
			ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)memory + 64);
			ibv_wr_set_sge_list(ex, k == batches[i].requests ? batches[i].elements : 1, sges);
		}
		INT(batches[i].error, ibv_wr_complete(ex));
	}
	for (int k = 1; k <= 18; k++) { // those of the last batch, and no other
		struct ibv_wc wc;
		INT(IBV_WC_SUCCESS, (int)poll_one(mine, &wc));
		INT(200 + k, (int)wc.wr_id);
	}
	INT(0, ibv_destroy_qp(qp));
	INT(0, ibv_destroy_qp(peer));
	INT(0, ibv_destroy_cq(mine));
}

static void test_polling(void)
{
	struct ibv_cq *mine = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_qp *qp = create_qp(pd, mine, NULL, IBV_QPT_RC, 4);
	CHECK(mine && qp);
	struct ibv_wc wc;
	INT(-1, ibv_poll_cq(mine, -1, &wc));
	INT(0, ibv_poll_cq(mine, 0, &wc));
	INT(EFAULT, -ibv_poll_cq(mine, 1, NULL));
	CHECK(!to_init(qp));
	CHECK(!post_recv(qp, mr, 8, 1));
	CHECK(!to_error(qp));
	INT(EFAULT, -ibv_poll_cq(mine, 1, (struct ibv_wc *)unmapped)); // of the receive that was flushed
	INT(0, ibv_destroy_qp(qp));
	INT(0, ibv_destroy_cq(mine));
}

int main(void)
{
	unmapped = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(unmapped != MAP_FAILED);
	context = open_first();
	CHECK((pd = ibv_alloc_pd(context)));
	CHECK((mr = ibv_reg_mr(pd, memory, sizeof memory, ALL_ACCESS)));
	test_batches();
	test_polling();
	INT(0, ibv_dereg_mr(mr));
	INT(0, ibv_dealloc_pd(pd));
	INT(0, ibv_close_device(context));
	printf("%d lines, %d wrong\n", lines, wrong);
	return wrong > 0;
}
