// A child by fork. Argument "first": the child is the first to use a device, which works. Argument "after": the parent
// has used one before, so that calls of the child fail with an error and none hangs, while the parent goes on.
#include "pair.h"

#include <sys/wait.h>
#include <unistd.h>

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *a, *b;
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
}

static void transfer(void)
{
	struct ibv_wc wc;
	CHECK(!post_write(a, mr, mr, 64, 7));
	CHECK(poll_one(cq, &wc) == IBV_WC_SUCCESS && wc.wr_id == 7);
}

static void close_all(void)
{
	CHECK(!ibv_destroy_qp(a));
	CHECK(!ibv_destroy_qp(b));
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
	close_all(); // frees the structures only
}

int main(int argc, char **argv)
{
	bool after = argc > 1 && !strcmp(argv[1], "after");
	if (after) {
		open_all();
		transfer();
	}
	pid_t child = fork();
	CHECK(child >= 0);
	if (!child) {
		alarm(20); // a call that hangs
		if (after) {
			fail_all();
		} else {
			open_all();
			transfer();
			close_all();
		}
		exit(42); // with the handlers of atexit
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child);
	if (after) {
		transfer();
		close_all();
	}
	printf("child %d %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	return 0;
}
