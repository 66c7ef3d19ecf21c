// A child by fork. Argument "first": the child is the first to use a device, which works, also after the parent called
// the functions of ibv_fork_init(3). Argument "loaded": the parent has loaded the engine without a device, so that the
// child finds none. Argument "after": the parent has used one before, so that calls of the child fail with an error and
// none hangs, while the parent goes on.
#include "pair.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

// Exported, and declared in a private header of rdma-core.
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *a, *b, *built;
static struct ibv_comp_channel *channel;
static char memory[4096];

static void open_all(void)
{
	context = open_first();
	CHECK((pd = ibv_alloc_pd(context)));
	CHECK((channel = ibv_create_comp_channel(context)));
	CHECK((cq = ibv_create_cq(context, 16, NULL, channel, 0)));
	CHECK((mr = ibv_reg_mr(pd, memory, sizeof memory, ALL_ACCESS)));
	CHECK((a = create_qp(pd, cq, NULL, IBV_QPT_RC, 8)));
	CHECK((b = create_qp(pd, cq, NULL, IBV_QPT_RC, 8)));
	connect_qps(a, b);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq, .recv_cq = cq, .cap = {8, 8, 1, 1, 0}, .qp_type = IBV_QPT_RC, .pd = pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	CHECK((built = ibv_create_qp_ex(context, &attr)));
}

static void transfer(void)
{
	struct ibv_wc wc;
	CHECK(!post_write(a, mr, mr, 64, 7));
	CHECK(poll_one(cq, &wc) == IBV_WC_SUCCESS && wc.wr_id == 7);
}

static bool take_events; // a thread of the parent acknowledges events

// acknowledge_all acknowledges events for ever, and so holds the mutex of the channel at most times.
static void *acknowledge_all(void *unused)
{
	(void)unused;
	while (__atomic_load_n(&take_events, __ATOMIC_RELAXED))
		ibv_ack_cq_events(cq, 0);
	return NULL;
}

static void close_all(void)
{
	CHECK(!ibv_destroy_qp(a));
	CHECK(!ibv_destroy_qp(b));
	CHECK(!ibv_destroy_qp(built));
	CHECK(!ibv_dereg_mr(mr));
	CHECK(!ibv_destroy_cq(cq));
	CHECK(!ibv_destroy_comp_channel(channel));
	CHECK(!ibv_dealloc_pd(pd));
	CHECK(!ibv_close_device(context));
}

// fail_all makes calls in a child that cannot use the device.
static void fail_all(void)
{
	struct ibv_wc wc;
	struct ibv_cq *event_cq;
	void *event_context;
	struct ibv_async_event event;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	int count = -1;
	CHECK(ibv_get_device_list(&count) && count == 0);
	CHECK(!ibv_query_device(context, &attr) && attr.max_qp > 0);
	CHECK(ibv_query_port(context, 1, &port) == EIO);
	CHECK(!ibv_alloc_pd(context) && errno == EIO);
	CHECK(!ibv_reg_mr(pd, memory, sizeof memory, 0) && errno == EIO);
	CHECK(!ibv_create_cq(context, 16, NULL, NULL, 0) && errno == EIO);
	CHECK(!create_qp(pd, cq, NULL, IBV_QPT_RC, 8) && errno == EIO);
	CHECK(!ibv_create_comp_channel(context) && errno == EIO);
	CHECK(to_init(a) == EIO);
	CHECK(post_write(a, mr, mr, 64, 1) == EIO);
	CHECK(post_recv(a, mr, 64, 1) == EIO);
	CHECK(ibv_poll_cq(cq, 1, &wc) < 0);
	CHECK(ibv_req_notify_cq(cq, 0) == EIO);
	CHECK(ibv_get_cq_event(channel, &event_cq, &event_context) == -1 && errno == EIO);
	CHECK(ibv_get_async_event(context, &event) == -1 && errno == EIO);
	ibv_ack_cq_events(cq, 0);
	ibv_wr_start(ibv_qp_to_qp_ex(built)); // which the parent had called at the fork
	ibv_wr_rdma_write(ibv_qp_to_qp_ex(built), 1, 1);
	CHECK(ibv_wr_complete(ibv_qp_to_qp_ex(built)) == EIO);
	ibv_wr_start(ibv_qp_to_qp_ex(built));
	ibv_wr_abort(ibv_qp_to_qp_ex(built));
	close_all(); // frees the structures only
}

// run_child runs a function in a child and returns its wait status.
static int run_child(void (*run)(void))
{
	pid_t child = fork();
	CHECK(child >= 0);
	if (!child) {
		alarm(20); // a call that hangs
		run();
		exit(42); // with the handlers of atexit
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child);
	return status;
}

static void use_device(void)
{
	open_all();
	transfer();
	close_all();
}

static void find_none(void)
{
	int count = -1;
	CHECK(ibv_get_device_list(&count) && count == 0);
}

int main(int argc, char **argv)
{
	int status;
	CHECK(argc == 2);
	if (!strcmp(argv[1], "first")) {
		CHECK(!ibv_fork_init() && ibv_is_fork_initialized() == IBV_FORK_UNNEEDED);
		CHECK(!ibv_dontfork_range(memory, sizeof memory) && !ibv_dofork_range(memory, sizeof memory));
		status = run_child(use_device);
	} else if (!strcmp(argv[1], "loaded")) {
		struct ibv_device device = {.name = "none"};
		CHECK(!strcmp(ibv_get_device_name(&device), "none"));
		status = run_child(find_none);
	} else {
		pthread_t thread;
		open_all();
		transfer();
		take_events = true;
		CHECK(!pthread_create(&thread, NULL, acknowledge_all, NULL));
		ibv_wr_start(ibv_qp_to_qp_ex(built));
		for (int i = 0; i < 20; i++)
			CHECK((status = run_child(fail_all)) == 42 << 8);
		__atomic_store_n(&take_events, false, __ATOMIC_RELAXED);
		CHECK(!pthread_join(thread, NULL));
		ibv_wr_abort(ibv_qp_to_qp_ex(built));
		transfer();
		close_all();
	}
	printf("child %d %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	return 0;
}
