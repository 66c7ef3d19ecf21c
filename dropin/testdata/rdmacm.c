/* Checks of librdmacm beyond those of rdma-core's programs: errno, states, events and descriptors. Each case is the
 * argument of a run in one process, which connects to itself. */
#include "rdmacm.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* test_states checks errors of calls in the wrong state and with wrong addresses. */
static void test_states(void)
{
	struct rdma_cm_id *id, *other;
	CHECK_ERRNO(rdma_create_id(channel, &id, NULL, 77), EINVAL);
	id = new_id(RDMA_PS_TCP);
	const uintptr_t nowhere[] = { 0, 8, 1UL << 46, UINTPTR_MAX };
	for (int i = 0; i < 4; i++)
		CHECK_ERRNO(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, (void *)nowhere[i], 1), EFAULT);
	CHECK_ERRNO(rdma_bind_addr(id, address("192.0.2.1", 0)), ENODEV);
	struct sockaddr odd = { .sa_family = AF_UNIX };
	CHECK_ERRNO(rdma_bind_addr(id, &odd), EINVAL);
	CHECK(rdma_bind_addr(id, address("127.0.0.1", 0)) == 0); /* the host: the adapter's own address */
	char own[INET_ADDRSTRLEN];
	inet_ntop(AF_INET, &((struct sockaddr_in *)rdma_get_local_addr(id))->sin_addr, own, sizeof own);
	CHECK(strcmp(own, getenv("SOFTRNIC_ADDR")) == 0);
	CHECK_ERRNO(rdma_bind_addr(id, address("0.0.0.0", 0)), EINVAL);
	int port = ntohs(rdma_get_src_port(id));
	other = new_id(RDMA_PS_TCP);
	CHECK_ERRNO(rdma_bind_addr(other, address("0.0.0.0", port)), EADDRINUSE);
	CHECK(rdma_destroy_id(other) == 0);
	other = new_id(RDMA_PS_UDP); /* another port space */
	CHECK(rdma_bind_addr(other, address("0.0.0.0", port)) == 0);
	CHECK(rdma_destroy_id(other) == 0);
	CHECK_ERRNO(rdma_accept(id, &(struct rdma_conn_param){ .qp_num = 5 }), EINVAL);
	CHECK_ERRNO(rdma_reject(id, NULL, 0), EINVAL);
	CHECK_ERRNO(rdma_notify(id, IBV_EVENT_COMM_EST), EINVAL);
	CHECK_ERRNO(rdma_disconnect(id), EINVAL);
	CHECK_ERRNO(rdma_connect(id, &(struct rdma_conn_param){ .qp_num = 5 }), EINVAL);
	CHECK(rdma_listen(id, 1) == 0);
	CHECK_ERRNO(rdma_listen(id, 1), EINVAL);
	CHECK_ERRNO(rdma_resolve_addr(id, NULL, address("127.0.0.1", 1), 100), EINVAL);
	CHECK_ERRNO(rdma_set_option(id, 7, 0, NULL, 0), ENOSYS);
	uint8_t tos[2] = { 8 };
	CHECK_ERRNO(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, tos, 2), EINVAL);
	CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, tos, 1) == 0);
	CHECK(rdma_destroy_id(id) == 0);
	id = new_id(RDMA_PS_TCP); /* the port is free again, and two ids may share it until one listens */
	int on = 1;
	other = new_id(RDMA_PS_TCP);
	CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on) == 0);
	CHECK(rdma_set_option(other, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on) == 0);
	CHECK(rdma_bind_addr(id, address("0.0.0.0", port)) == 0);
	CHECK(rdma_bind_addr(other, address("0.0.0.0", port)) == 0);
	CHECK(rdma_listen(id, 1) == 0);
	CHECK_ERRNO(rdma_listen(other, 1), EADDRINUSE);
	rdma_destroy_id(id);
	rdma_destroy_id(other);
	id = new_id(RDMA_PS_TCP); /* no route: another family */
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = 1, .sin6_addr = { { { 0x20, 1, 0xd, 0xb8 } } } };
	CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&v6, 100) == 0);
	struct rdma_cm_event *event = expect(RDMA_CM_EVENT_ADDR_ERROR);
	CHECK(event->status == -ENODEV || event->status == -ENETUNREACH);
	rdma_ack_cm_event(event);
	rdma_destroy_id(id);
}

/* connect_pair connects two ids with queue pairs: *passive becomes the id of the request. */
static struct rdma_cm_id *connect_pair(int port, struct rdma_cm_id **passive)
{
	struct rdma_cm_id *active = resolve(RDMA_PS_TCP, port);
	create_qp(active);
	struct rdma_conn_param p = { .private_data = "hello", .private_data_len = 5, .responder_resources = 3,
				     .initiator_depth = 2, .retry_count = 5, .rnr_retry_count = 6 };
	CHECK(rdma_connect(active, &p) == 0);
	struct rdma_cm_event *event = expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_conn_param *got = &event->param.conn;
	CHECK(event->listen_id && event->id != event->listen_id);
	CHECK(got->private_data_len == 56 && memcmp(got->private_data, "hello", 5) == 0);
	CHECK(got->responder_resources == 2 && got->initiator_depth == 3 && got->rnr_retry_count == 6);
	CHECK(got->qp_num == active->qp->qp_num);
	*passive = event->id;
	rdma_ack_cm_event(event);
	create_qp(*passive);
	struct rdma_conn_param reply = { .private_data = "welcome", .private_data_len = 7, .responder_resources = 2,
					 .initiator_depth = 3, .rnr_retry_count = 7 };
	CHECK(rdma_accept(*passive, &reply) == 0);
	event = expect(RDMA_CM_EVENT_ESTABLISHED); /* of the active side, whose queue pair librdmacm has moved */
	CHECK(event->id == active && event->param.conn.private_data_len == 196);
	CHECK(memcmp(event->param.conn.private_data, "welcome", 7) == 0);
	rdma_ack_cm_event(event);
	event = expect(RDMA_CM_EVENT_ESTABLISHED);
	CHECK(event->id == *passive);
	rdma_ack_cm_event(event);
	return active;
}

static void destroy_with_qp(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	CHECK(rdma_destroy_id(id) == 0);
}

/* test_connect checks a connection with all its events. */
static void test_connect(void)
{
	int port;
	struct rdma_cm_id *listener = new_listener(RDMA_PS_TCP, &port), *passive;
	struct rdma_cm_id *active = connect_pair(port, &passive);
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	CHECK(ibv_query_qp(active->qp, &attr, IBV_QP_STATE, &init) == 0);
	CHECK(attr.qp_state == IBV_QPS_RTS && attr.dest_qp_num == passive->qp->qp_num && attr.max_rd_atomic == 2);
	CHECK(attr.max_dest_rd_atomic == 3 && attr.retry_cnt == 5 && attr.rnr_retry == 7);
	CHECK(ibv_query_qp(passive->qp, &attr, IBV_QP_STATE, &init) == 0);
	CHECK(attr.qp_state == IBV_QPS_RTS && attr.max_rd_atomic == 3 && attr.max_dest_rd_atomic == 2 && attr.rnr_retry == 6);
	CHECK_ERRNO(rdma_notify(passive, IBV_EVENT_COMM_EST), EISCONN);
	CHECK_ERRNO(rdma_connect(active, NULL), EINVAL);
	CHECK(rdma_disconnect(active) == 0);
	int active_ended = 0, passive_ended = 0, timewait = 0;
	while (!active_ended || !passive_ended || timewait < 2) {
		struct rdma_cm_event *event;
		CHECK(readable(channel->fd, 20000));
		CHECK(rdma_get_cm_event(channel, &event) == 0);
		active_ended |= event->event == RDMA_CM_EVENT_DISCONNECTED && event->id == active;
		passive_ended |= event->event == RDMA_CM_EVENT_DISCONNECTED && event->id == passive;
		timewait += event->event == RDMA_CM_EVENT_TIMEWAIT_EXIT;
		rdma_ack_cm_event(event);
	}
	CHECK(rdma_disconnect(passive) == 0);
	destroy_with_qp(active);
	destroy_with_qp(passive);
	CHECK(rdma_destroy_id(listener) == 0);
}

/* test_external checks a connection whose queue pairs are not librdmacm's. */
static void test_external(void)
{
	int port;
	struct rdma_cm_id *listener = new_listener(RDMA_PS_TCP, &port), *active = resolve(RDMA_PS_TCP, port), *passive;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	int mask;
	CHECK(rdma_connect(active, &(struct rdma_conn_param){ .qp_num = 0x1234, .srq = 1, .retry_count = 7 }) == 0);
	struct rdma_cm_event *event = expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(event->param.conn.qp_num == 0x1234 && event->param.conn.srq == 1);
	passive = event->id;
	rdma_ack_cm_event(event);
	CHECK(rdma_accept(passive, &(struct rdma_conn_param){ .qp_num = 0x4321 }) == 0);
	event = expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK(event->id == active && event->param.conn.qp_num == 0x4321);
	rdma_ack_cm_event(event);
	CHECK(rdma_init_qp_attr(active, &attr, &mask) == 0);
	CHECK(attr.dest_qp_num == 0x4321 && attr.ah_attr.is_global && mask & IBV_QP_AV && mask & IBV_QP_RQ_PSN);
	uint32_t psn = attr.rq_psn;
	attr.qp_state = IBV_QPS_RTS;
	CHECK(rdma_init_qp_attr(passive, &attr, &mask) == 0);
	CHECK(attr.sq_psn == psn && mask & IBV_QP_SQ_PSN && mask & IBV_QP_TIMEOUT);
	CHECK(rdma_establish(active) == 0);
	take(RDMA_CM_EVENT_ESTABLISHED);
	CHECK(rdma_destroy_id(active) == 0); /* disconnects */
	event = expect(RDMA_CM_EVENT_DISCONNECTED);
	CHECK(event->id == passive);
	rdma_ack_cm_event(event);
	rdma_destroy_id(passive);

	active = resolve(RDMA_PS_TCP, port); /* rejected with private data */
	CHECK(rdma_connect(active, &(struct rdma_conn_param){ .qp_num = 0x1235 }) == 0);
	event = expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	passive = event->id;
	rdma_ack_cm_event(event);
	CHECK(rdma_reject(passive, "no", 2) == 0);
	rdma_destroy_id(passive);
	event = expect(RDMA_CM_EVENT_REJECTED);
	CHECK(event->status == 28 && memcmp(event->param.conn.private_data, "no", 2) == 0);
	rdma_ack_cm_event(event);
	rdma_destroy_id(active);
	rdma_destroy_id(listener);

	active = resolve(RDMA_PS_TCP, port); /* without a listener */
	CHECK(rdma_connect(active, &(struct rdma_conn_param){ .qp_num = 0x1236 }) == 0);
	event = expect(RDMA_CM_EVENT_REJECTED);
	CHECK(event->status == 8);
	rdma_ack_cm_event(event);
	rdma_destroy_id(active);
}

/* test_early connects to localhost at a port that its server has bound and does not listen to yet. */
static void test_early(void)
{
	int port;
	struct rdma_cm_id *server = new_id(RDMA_PS_TCP), *other, *client;
	CHECK(rdma_bind_addr(server, address("0.0.0.0", 0)) == 0);
	client = resolve_at("127.0.0.1", RDMA_PS_TCP, ntohs(rdma_get_src_port(server)));
	CHECK(rdma_connect(client, &(struct rdma_conn_param){ .qp_num = 0x1237 }) == 0);
	other = new_listener(RDMA_PS_TCP, &port); /* the first request has arrived when the one to this listener has */
	CHECK(rdma_connect(resolve(RDMA_PS_TCP, port), &(struct rdma_conn_param){ .qp_num = 0x1238 }) == 0);
	struct rdma_cm_event *event = expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(event->listen_id == other);
	CHECK(rdma_listen(server, 4) == 0);
	event = expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(event->listen_id == server && event->param.conn.qp_num == 0x1237);
}

/* test_datagrams checks the resolution of a port to a UD queue pair. */
static void test_datagrams(void)
{
	int port;
	struct rdma_cm_id *listener = new_listener(RDMA_PS_UDP, &port), *active = resolve(RDMA_PS_UDP, port);
	create_qp(active);
	CHECK(rdma_connect(active, &(struct rdma_conn_param){ .private_data = "who", .private_data_len = 3 }) == 0);
	struct rdma_cm_event *event = expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(event->param.ud.private_data_len == 180 && memcmp(event->param.ud.private_data, "who", 3) == 0);
	struct rdma_cm_id *passive = event->id;
	rdma_ack_cm_event(event);
	create_qp(passive);
	CHECK(rdma_accept(passive, &(struct rdma_conn_param){ .qp_num = passive->qp->qp_num }) == 0);
	event = expect(RDMA_CM_EVENT_ESTABLISHED);
	CHECK(event->id == active && event->param.ud.qp_num == passive->qp->qp_num && event->param.ud.qkey == RDMA_UDP_QKEY);
	CHECK(event->param.ud.ah_attr.is_global);
	rdma_ack_cm_event(event);
	destroy_with_qp(passive);
	destroy_with_qp(active);

	active = resolve(RDMA_PS_UDP, port);
	CHECK(rdma_connect(active, &(struct rdma_conn_param){ .qp_num = 5 }) == 0);
	event = expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(rdma_reject(event->id, NULL, 0) == 0);
	passive = event->id;
	rdma_ack_cm_event(event);
	rdma_destroy_id(passive);
	event = expect(RDMA_CM_EVENT_UNREACHABLE);
	CHECK(event->status > 0); /* of the SIDR_REP */
	rdma_ack_cm_event(event);
	rdma_destroy_id(active);
	rdma_destroy_id(listener);
}

static void ignore(int signal) { (void)signal; }

/* is_waiting reports whether the first thread of the process sleeps in a system call. */
static bool is_waiting(void)
{
	char path[64], text[256] = "";
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
	int fd = open(path, O_RDONLY);
	CHECK(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
	close(fd);
	const char *name_end = strrchr(text, ')');
	return name_end && name_end[1] == ' ' && name_end[2] == 'S';
}

static atomic_bool acknowledged;

/* ack_later acknowledges an event when the first thread waits for that. */
static void *ack_later(void *event)
{
	while (!is_waiting())
		sched_yield();
	atomic_store(&acknowledged, true);
	rdma_ack_cm_event(event);
	return NULL;
}

/* test_channel checks the descriptor and the events of a channel. */
static void test_channel(void)
{
	struct rdma_cm_event *event;
	int flags = fcntl(channel->fd, F_GETFL);
	CHECK(fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) == 0);
	CHECK_ERRNO(rdma_get_cm_event(channel, &event), EAGAIN);
	CHECK(!readable(channel->fd, 0));
	int epoll = epoll_create1(0);
	struct epoll_event watch = { .events = EPOLLIN | EPOLLET };
	CHECK(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, channel->fd, &watch) == 0);
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);
	CHECK(rdma_resolve_addr(id, NULL, address("0.0.0.0", 9), 100) == 0);
	CHECK(epoll_wait(epoll, &watch, 1, 20000) == 1);
	CHECK(epoll_wait(epoll, &watch, 1, 0) == 0); /* the edge of one event */
	CHECK(readable(channel->fd, 0));
	CHECK(rdma_destroy_id(id) == 0); /* with its event */
	CHECK(!readable(channel->fd, 0));
	CHECK_ERRNO(rdma_get_cm_event(channel, &event), EAGAIN);
	CHECK(fcntl(channel->fd, F_SETFL, flags) == 0);

	struct sigaction action = { .sa_handler = ignore }, before;
	sigaction(SIGALRM, &action, &before);
	ualarm(20000, 0);
	CHECK_ERRNO(rdma_get_cm_event(channel, &event), EINTR);
	sigaction(SIGALRM, &before, NULL);

	id = new_id(RDMA_PS_TCP); /* destroy waits for the acknowledgement */
	CHECK(rdma_resolve_addr(id, NULL, address("0.0.0.0", 9), 100) == 0);
	event = expect(RDMA_CM_EVENT_ADDR_RESOLVED);
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, ack_later, event) == 0);
	CHECK(rdma_destroy_id(id) == 0);
	CHECK(atomic_load(&acknowledged));
	pthread_join(thread, NULL);

	id = new_id(RDMA_PS_TCP); /* migration takes the events along */
	CHECK(rdma_resolve_addr(id, NULL, address("0.0.0.0", 9), 100) == 0);
	struct rdma_event_channel *first = channel, *second = rdma_create_event_channel();
	CHECK(second && rdma_migrate_id(id, second) == 0);
	CHECK(!readable(first->fd, 0));
	channel = second;
	take(RDMA_CM_EVENT_ADDR_RESOLVED);
	rdma_destroy_id(id);
	channel = first;

	int ends[2], fd = second->fd; /* the number of a closed channel is an ordinary descriptor again */
	char text[4] = "";
	CHECK(pipe(ends) == 0);
	rdma_destroy_event_channel(second);
	CHECK(dup2(ends[1], fd) == fd);
	CHECK(write(fd, "abc", 3) == 3 && read(ends[0], text, 3) == 3 && strcmp(text, "abc") == 0);

	enum { many = 300 }; /* more events than tokens */
	struct rdma_cm_id *ids[many];
	for (int i = 0; i < many; i++) {
		ids[i] = new_id(RDMA_PS_TCP);
		CHECK(rdma_resolve_addr(ids[i], NULL, address("0.0.0.0", 9), 100) == 0);
	}
	for (int i = 0; i < many; i++) {
		event = expect(RDMA_CM_EVENT_ADDR_RESOLVED);
		CHECK(event->id == ids[i]);
		rdma_ack_cm_event(event);
		rdma_destroy_id(ids[i]);
	}
	CHECK(!readable(channel->fd, 0));
}

/* test_close checks that closing a channel frees its ids, as the end of a program does. */
static void test_close(void)
{
	struct rdma_event_channel *second = rdma_create_event_channel(), *first = channel;
	channel = second;
	int port;
	struct rdma_cm_id *listener = new_listener(RDMA_PS_TCP, &port);
	CHECK(listener != NULL);
	channel = first;
	close(second->fd);
	for (time_t start = time(NULL);; sched_yield()) { /* the port becomes free soon */
		struct rdma_cm_id *id = new_id(RDMA_PS_TCP);
		int result = rdma_bind_addr(id, address("0.0.0.0", port));
		CHECK(result == 0 || (errno == EADDRINUSE && time(NULL) < start + 20));
		rdma_destroy_id(id);
		if (result == 0)
			return;
	}
}

/* test_fork checks that a child can neither use the channel nor hangs. */
static void test_fork(void)
{
	pid_t child = fork();
	if (child == 0) {
		struct rdma_cm_id *id;
		alarm(10);
		errno = 0;
		_exit(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == -1 && errno == EIO ? 0 : 1);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	rdma_destroy_id(new_id(RDMA_PS_TCP));
	child = fork();
	if (child == 0) { // another file at the descriptor
		char text[3];
		int ends[2];
		_exit(!pipe(ends) && dup2(ends[1], channel->fd) == channel->fd && write(channel->fd, "abc", 3) == 3 &&
		      read(ends[0], text, 3) == 3 ? 0 : 1);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

// test_reuse checks that a socket with the number of a closed channel is a socket.
static void test_reuse(void)
{
	struct stat s;
	struct rdma_event_channel *other = rdma_create_event_channel();
	CHECK(other);
	int number = other->fd;
	CHECK(fstat(number, &s) == 0 && S_ISCHR(s.st_mode));
	rdma_destroy_event_channel(other);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(fd >= 0 && dup2(fd, number) == number);
	CHECK(fstat(number, &s) == 0 && S_ISSOCK(s.st_mode));
	close(fd);
	close(number);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = { { "states", test_states },	 { "connect", test_connect }, { "external", test_external },
		      { "datagrams", test_datagrams }, { "channel", test_channel }, { "close", test_close },
		      { "fork", test_fork }, { "reuse", test_reuse }, { "early", test_early } };
	alarm(60);
	channel = rdma_create_event_channel();
	CHECK(channel);
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		if (argc == 2 && strcmp(argv[1], tests[i].name) == 0) {
			tests[i].run();
			rdma_destroy_event_channel(channel);
			return 0;
		}
	}
	return 2;
}
