// Memory that is unmapped after ibv_reg_mr. Argument "remote": a peer writes into it. "local": a request sends from it.
// "receive": a message arrives for it. Prints the statuses of the completions.
#include "pair.h"

#include <sys/mman.h>

enum { SIZE = 1 << 16 };

// map registers memory at an address that the system gives to no other mapping once it is unmapped.
static struct ibv_mr *map(struct ibv_pd *pd)
{
	static uintptr_t far = 0x500000000000;
	char *memory = mmap((void *)(far += SIZE), SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED);
	memset(memory, 1, SIZE);
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, SIZE, ALL_ACCESS);
	CHECK(mr);
	return mr;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "remote";
	struct ibv_context *context = open_first();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	CHECK(pd);
	struct ibv_cq *send_cq = ibv_create_cq(context, 16, NULL, NULL, 0), *recv_cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	CHECK(send_cq && recv_cq);
	struct ibv_mr *from = map(pd), *to = map(pd);
	struct ibv_qp *a = create_qp(pd, send_cq, NULL, IBV_QPT_RC, 8), *b = create_qp(pd, recv_cq, NULL, IBV_QPT_RC, 8);
	CHECK(a && b);
	connect_qps(a, b);
	struct ibv_wc wc;
	if (!strcmp(kind, "remote")) {
		CHECK(!munmap(to->addr, SIZE));
		CHECK(!post_write(a, from, to, 4096, 1));
		printf("%d\n", poll_one(send_cq, &wc));
	} else if (!strcmp(kind, "local")) {
		CHECK(!munmap(from->addr, SIZE));
		CHECK(!post_write(a, from, to, 4096, 1));
		printf("%d\n", poll_one(send_cq, &wc));
	} else {
		CHECK(!munmap(to->addr, SIZE));
		CHECK(!post_recv(b, to, 4096, 2));
		CHECK(!post_send(a, from, 4096, 1));
		printf("%d\n", poll_one(send_cq, &wc));
		printf("%d\n", poll_one(recv_cq, &wc));
	}
	CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b));
	CHECK(!ibv_dereg_mr(from) && !ibv_dereg_mr(to));
	CHECK(!ibv_destroy_cq(send_cq) && !ibv_destroy_cq(recv_cq));
	CHECK(!ibv_dealloc_pd(pd) && !ibv_close_device(context));
	return 0;
}
