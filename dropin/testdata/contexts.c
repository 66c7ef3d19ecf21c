// Contexts of a device. The argument names the case.
#include "pair.h"

#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

static char memory[4096];

static atomic_bool failing; // allocations of the size of an event fail, but not those for threads
static atomic_int failed;

void *__libc_calloc(size_t count, size_t size);

void *calloc(size_t count, size_t size)
{
	if (count == 1 && size <= 32 && atomic_load(&failing)) {
		failed++;
		errno = ENOMEM;
		return NULL;
	}
	return __libc_calloc(count, size);
}

// test_close closes a context with live objects: they end with it.
static void test_close(void)
{
	struct ibv_context *first = open_first(), *second = open_first();
	struct ibv_pd *pd = ibv_alloc_pd(first), *other_pd = ibv_alloc_pd(second);
	struct ibv_cq *cq = ibv_create_cq(first, 16, NULL, NULL, 0), *other_cq = ibv_create_cq(second, 16, NULL, NULL, 0);
	CHECK(pd && other_pd && cq && other_cq);
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof memory, ALL_ACCESS);
	struct ibv_mr *other_mr = ibv_reg_mr(other_pd, memory, sizeof memory, ALL_ACCESS);
	struct ibv_qp *a = create_qp(pd, cq, NULL, IBV_QPT_RC, 8), *b = create_qp(other_pd, other_cq, NULL, IBV_QPT_RC, 8);
	CHECK(mr && other_mr && a && b);
	CHECK(!to_init(a) && !to_init(b) && !to_rtr(a, b->qp_num) && !to_rtr(b, a->qp_num) && !to_rts(b));
	struct ibv_qp_attr attr;
	memset(&attr, 0, sizeof attr);
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 10; // 4 ms
	attr.retry_cnt = 1;
	attr.max_rd_atomic = 1;
	CHECK(!ibv_modify_qp(a, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					       IBV_QP_MAX_QP_RD_ATOMIC));
	struct ibv_wc wc;
	CHECK(!post_write(a, mr, other_mr, 8, 1) && poll_one(cq, &wc) == IBV_WC_SUCCESS);
	CHECK(!ibv_close_device(second));
	CHECK(!post_write(a, mr, other_mr, 8, 2) && poll_one(cq, &wc) == IBV_WC_RETRY_EXC_ERR);
	CHECK(ibv_destroy_qp(b) == EINVAL && ibv_dereg_mr(other_mr) == EINVAL);
	CHECK(ibv_destroy_cq(other_cq) == EINVAL && ibv_dealloc_pd(other_pd) == EINVAL);
	CHECK(!ibv_destroy_qp(a) && !ibv_dereg_mr(mr) && !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd) && !ibv_close_device(first));
}

// test_flags checks that both words of capabilities agree in the flags that both have.
static void test_flags(void)
{
	struct ibv_context *context = open_first();
	struct ibv_device_attr_ex attr;
	CHECK(!ibv_query_device_ex(context, NULL, &attr));
	CHECK(attr.orig_attr.device_cap_flags && (uint32_t)attr.device_cap_flags_ex == attr.orig_attr.device_cap_flags);
}

// test_descriptors opens a context where only one descriptor is left.
static void test_descriptors(void)
{
	int count;
	struct ibv_device **list = ibv_get_device_list(&count);
	CHECK(list && count == 1);
	int next = dup(0);
	CHECK(next >= 0 && !close(next));
	struct rlimit before, limit;
	CHECK(!getrlimit(RLIMIT_NOFILE, &before));
	limit = before;
	limit.rlim_cur = next + 1;
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	CHECK(!ibv_open_device(list[0]) && errno == EMFILE);
	CHECK(!setrlimit(RLIMIT_NOFILE, &before));
	CHECK(dup(0) == next); // none leaked
	CHECK(ibv_open_device(list[0]));
}

// test_no_memory checks that an event arrives while memory is short.
static void test_no_memory(void)
{
	struct ibv_context *context = open_first();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, channel, 0), *event_cq;
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof memory, ALL_ACCESS);
	struct ibv_qp *a = create_qp(pd, cq, NULL, IBV_QPT_RC, 8), *b = create_qp(pd, cq, NULL, IBV_QPT_RC, 8);
	struct ibv_wc wc;
	void *event_context;
	CHECK(channel && cq && mr && a && b);
	connect_qps(a, b);
	for (int i = 0; i < 5; i++) {
		CHECK(!ibv_req_notify_cq(cq, 0));
		atomic_store(&failing, i > 0);
		CHECK(!post_write(a, mr, mr, 8, 1));
		int n = poll(&(struct pollfd){channel->fd, POLLIN, 0}, 1, 5000);
		atomic_store(&failing, false);
		CHECK(n == 1 && !ibv_get_cq_event(channel, &event_cq, &event_context) && event_cq == cq);
		ibv_ack_cq_events(cq, 1);
		CHECK(poll_one(cq, &wc) == IBV_WC_SUCCESS);
	}
	CHECK(failed > 0);
	CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_destroy_cq(cq) && !ibv_destroy_comp_channel(channel));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*test)(void);
	} cases[] = {{"close", test_close}, {"flags", test_flags}, {"descriptors", test_descriptors}, {"no-memory", test_no_memory}};
	for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof cases[0]; i++) {
		if (!strcmp(argv[1], cases[i].name)) {
			cases[i].test();
			puts("ok");
			return 0;
		}
	}
	return 2;
}
