// Events of completion channels and of devices, with descriptors that wait by read, poll, select and epoll. The argument
// names the case.
#include "pair.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *a, *b;
static char memory[4096];
static int marks[2]; // contexts of objects

static void open_all(struct ibv_srq *(*create_srq)(void))
{
	context = open_first();
	CHECK((pd = ibv_alloc_pd(context)));
	CHECK((channel = ibv_create_comp_channel(context)));
	CHECK((cq = ibv_create_cq(context, 64, &marks[0], channel, 0)));
	CHECK((mr = ibv_reg_mr(pd, memory, sizeof memory, ALL_ACCESS)));
	CHECK((a = create_qp(pd, cq, NULL, IBV_QPT_RC, 16)));
	CHECK((b = create_qp(pd, cq, create_srq ? create_srq() : NULL, IBV_QPT_RC, 16)));
}

// wait_readable returns whether the descriptor becomes readable within the time in milliseconds.
static bool wait_by_poll(int fd, int timeout) { return poll(&(struct pollfd){fd, POLLIN, 0}, 1, timeout) == 1; }

static bool wait_by_select(int fd, int timeout)
{
	fd_set set;
	FD_ZERO(&set);
	FD_SET(fd, &set);
	return select(fd + 1, &set, NULL, NULL, &(struct timeval){timeout / 1000, timeout % 1000 * 1000}) == 1;
}

static bool wait_by_epoll(int fd, int timeout)
{
	int epoll = epoll_create1(0);
	struct epoll_event event = {EPOLLIN, {.fd = fd}};
	CHECK(epoll >= 0 && !epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
	int n = epoll_wait(epoll, &event, 1, timeout);
	close(epoll);
	return n == 1 && event.events == EPOLLIN;
}

static void take_completion(void)
{
	struct ibv_cq *event_cq;
	void *event_context;
	CHECK(!ibv_get_cq_event(channel, &event_cq, &event_context));
	CHECK(event_cq == cq && event_context == &marks[0]);
	ibv_ack_cq_events(event_cq, 1);
}

static void poll_all(int count)
{
	struct ibv_wc wc;
	while (count--)
		CHECK(poll_one(cq, &wc) == IBV_WC_SUCCESS);
}

// test_channel waits by all ways, blocking and not.
static void test_channel(void)
{
	static bool (*const ways[])(int, int) = {wait_by_poll, wait_by_select, wait_by_epoll};
	struct ibv_cq *event_cq;
	void *event_context;
	open_all(NULL);
	connect_qps(a, b);
	CHECK(!ibv_req_notify_cq(cq, 0));
	CHECK(!post_write(a, mr, mr, 64, 1));
	take_completion(); // blocks
	poll_all(1);
	CHECK(!fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK));
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		CHECK(!ways[i](channel->fd, 0));
		CHECK(ibv_get_cq_event(channel, &event_cq, &event_context) == -1 && errno == EAGAIN);
		CHECK(!ibv_req_notify_cq(cq, 0));
		CHECK(!ways[i](channel->fd, 0));
		CHECK(!post_write(a, mr, mr, 64, 1));
		CHECK(ways[i](channel->fd, 20000));
		take_completion();
		CHECK(!ways[i](channel->fd, 0));
		poll_all(1);
		// One event for several completions, and none without a request.
		CHECK(!post_write(a, mr, mr, 64, 1) && !post_write(a, mr, mr, 64, 1));
		poll_all(2);
		CHECK(!ways[i](channel->fd, 0));
	}
	// Only solicited completions.
	CHECK(!ibv_req_notify_cq(cq, 1));
	CHECK(!post_write(a, mr, mr, 64, 1));
	poll_all(1);
	CHECK(!wait_by_poll(channel->fd, 0));
	CHECK(!post_recv(b, mr, 64, 2) && !post_send(a, mr, 64, 3));
	CHECK(wait_by_poll(channel->fd, 20000));
	take_completion();
	poll_all(2);
}

static atomic_bool destroyed;

static void *destroy_cq(void *queue)
{
	CHECK(!ibv_destroy_cq(queue));
	atomic_store(&destroyed, true);
	return NULL;
}

static void *destroy_qp(void *qp)
{
	CHECK(!ibv_destroy_qp(qp));
	atomic_store(&destroyed, true);
	return NULL;
}

static void *destroy_srq(void *srq)
{
	CHECK(!ibv_destroy_srq(srq));
	atomic_store(&destroyed, true);
	return NULL;
}

// start_destroy calls a function in a thread and checks that it waits.
static pthread_t start_destroy(void *(*destroy)(void *), void *object)
{
	pthread_t thread;
	atomic_store(&destroyed, false);
	CHECK(!pthread_create(&thread, NULL, destroy, object));
	usleep(50000); // too short, the check is weaker
	CHECK(!atomic_load(&destroyed));
	return thread;
}

static void end_destroy(pthread_t thread)
{
	CHECK(!pthread_join(thread, NULL));
	CHECK(atomic_load(&destroyed));
}

// test_unacknowledged checks that ibv_destroy_cq waits for ibv_ack_cq_events, and forgets events nobody has taken.
static void test_unacknowledged(void)
{
	struct ibv_cq *event_cq;
	void *event_context;
	open_all(NULL);
	connect_qps(a, b);
	for (int i = 0; i < 2; i++) {
		CHECK(!ibv_req_notify_cq(cq, 0));
		CHECK(!post_write(a, mr, mr, 64, 1));
		CHECK(!ibv_get_cq_event(channel, &event_cq, &event_context));
		poll_all(1);
	}
	CHECK(!ibv_req_notify_cq(cq, 0));
	CHECK(!post_write(a, mr, mr, 64, 1));
	CHECK(wait_by_poll(channel->fd, 20000)); // not taken
	poll_all(1);
	CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b));
	pthread_t thread = start_destroy(destroy_cq, cq);
	ibv_ack_cq_events(cq, 2);
	end_destroy(thread);
	CHECK(!wait_by_poll(channel->fd, 0));
	CHECK(!ibv_destroy_comp_channel(channel));
}

// take_event returns the next asynchronous event, which must have a type.
static struct ibv_async_event take_event(enum ibv_event_type type)
{
	struct ibv_async_event event;
	CHECK(wait_by_poll(context->async_fd, 20000));
	CHECK(!ibv_get_async_event(context, &event));
	if (event.event_type != type) {
		fprintf(stderr, "event %s, want %s\n", ibv_event_type_str(event.event_type), ibv_event_type_str(type));
		exit(1);
	}
	return event;
}

static struct ibv_srq *srq;

static struct ibv_srq *make_srq(void)
{
	struct ibv_srq_init_attr attr = {&marks[1], {16, 1, 0}};
	CHECK((srq = ibv_create_srq(pd, &attr)));
	return srq;
}

static void post_shared(void)
{
	struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
	struct ibv_recv_wr wr = {1, NULL, &sge, 1}, *bad;
	CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
}

// test_shared_queue checks the limit event and that of the last receive, and that destruction waits for both.
static void test_shared_queue(void)
{
	open_all(make_srq);
	connect_qps(a, b);
	for (int i = 0; i < 4; i++)
		post_shared();
	struct ibv_srq_attr limit = {.srq_limit = 3};
	CHECK(!ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
	CHECK(!wait_by_poll(context->async_fd, 0));
	CHECK(!post_send(a, mr, 8, 1) && !post_send(a, mr, 8, 1));
	poll_all(4);
	struct ibv_async_event event = take_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	CHECK(event.element.srq == srq);
	CHECK(!wait_by_poll(context->async_fd, 0)); // once
	CHECK(!ibv_query_srq(srq, &limit) && limit.srq_limit == 0);

	CHECK(!to_error(b));
	struct ibv_async_event last = take_event(IBV_EVENT_QP_LAST_WQE_REACHED);
	CHECK(last.element.qp == b);
	pthread_t thread = start_destroy(destroy_qp, b);
	ibv_ack_async_event(&last);
	end_destroy(thread);
	thread = start_destroy(destroy_srq, srq);
	ibv_ack_async_event(&event);
	end_destroy(thread);
}

// test_established checks the event of a message that arrives before the program moved to RTS.
static void test_established(void)
{
	open_all(NULL);
	CHECK(!to_init(a) && !to_init(b));
	CHECK(!post_recv(b, mr, 64, 2));
	CHECK(!to_rtr(b, a->qp_num));
	CHECK(!to_rtr(a, b->qp_num) && !to_rts(a));
	CHECK(!post_send(a, mr, 8, 1));
	struct ibv_async_event event = take_event(IBV_EVENT_COMM_EST);
	CHECK(event.element.qp == b);
	ibv_ack_async_event(&event);
	CHECK(!to_rts(b));
	poll_all(2);
	CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b));
}

// test_access checks the event of a responder that refuses a write, with a descriptor that does not block.
static void test_access(void)
{
	struct ibv_async_event event;
	struct ibv_wc wc;
	open_all(NULL);
	connect_qps(a, b);
	CHECK(!fcntl(context->async_fd, F_SETFL, fcntl(context->async_fd, F_GETFL) | O_NONBLOCK));
	CHECK(ibv_get_async_event(context, &event) == -1 && errno == EAGAIN);
	struct ibv_mr other = *mr;
	other.rkey ^= 0x100;
	CHECK(!post_write(a, mr, &other, 8, 1));
	CHECK(poll_one(cq, &wc) == IBV_WC_REM_ACCESS_ERR);
	event = take_event(IBV_EVENT_QP_ACCESS_ERR);
	CHECK(event.element.qp == b);
	ibv_ack_async_event(&event);
	CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b));
}

// test_overrun checks the events of a completion queue that overruns and of its queue pairs.
static void test_overrun(void)
{
	context = open_first();
	CHECK((pd = ibv_alloc_pd(context)));
	CHECK((cq = ibv_create_cq(context, 1, &marks[0], NULL, 0)));
	struct ibv_cq *other = ibv_create_cq(context, 64, NULL, NULL, 0);
	CHECK(other);
	CHECK((mr = ibv_reg_mr(pd, memory, sizeof memory, ALL_ACCESS)));
	CHECK((a = create_qp(pd, cq, NULL, IBV_QPT_RC, 16)));
	CHECK((b = create_qp(pd, other, NULL, IBV_QPT_RC, 16)));
	connect_qps(a, b);
	for (int i = 0; i <= cq->cqe; i++)
		CHECK(!post_write(a, mr, mr, 8, 1));
	struct ibv_async_event event, fatal = {.event_type = IBV_EVENT_PORT_ACTIVE};
	bool queue = false, pair = false;
	while (!queue || !pair) {
		CHECK(wait_by_poll(context->async_fd, 20000) && !ibv_get_async_event(context, &event));
		if (event.event_type == IBV_EVENT_CQ_ERR) {
			CHECK(event.element.cq == cq);
			queue = true;
			ibv_ack_async_event(&event);
		} else {
			CHECK(event.event_type == IBV_EVENT_QP_FATAL && event.element.qp == a);
			pair = true;
			fatal = event;
		}
	}
	pthread_t thread = start_destroy(destroy_qp, a);
	ibv_ack_async_event(&fatal);
	end_destroy(thread);
	CHECK(!ibv_destroy_qp(b) && !ibv_destroy_cq(cq) && !ibv_destroy_cq(other));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*test)(void);
	} cases[] = {{"channel", test_channel}, {"unacknowledged", test_unacknowledged}, {"shared-queue", test_shared_queue},
		     {"established", test_established}, {"access", test_access}, {"overrun", test_overrun}};
	for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof cases[0]; i++) {
		if (!strcmp(argv[1], cases[i].name)) {
			cases[i].test();
			puts("ok");
			return 0;
		}
	}
	return 2;
}
