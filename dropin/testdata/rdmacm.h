/* Helpers of rdmacm.c: ids of one event channel, addresses and events. */
#ifndef RDMACM_H
#define RDMACM_H

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			printf("line %d: %s: %s\n", __LINE__, #condition, strerror(errno));                            \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

#define CHECK_ERRNO(call, error)                                                                                       \
	do {                                                                                                           \
		errno = 0;                                                                                             \
		CHECK((call) == -1 && errno == (error));                                                               \
	} while (0)

static struct rdma_event_channel *channel;

/* address returns a sockaddr of IPv4, which the next call overwrites. */
static struct sockaddr *address(const char *text, int port)
{
	static struct sockaddr_in a;
	memset(&a, 0, sizeof a);
	a.sin_family = AF_INET;
	a.sin_port = htons(port);
	inet_pton(AF_INET, text, &a.sin_addr);
	return (struct sockaddr *)&a;
}

static struct rdma_cm_id *new_id(enum rdma_port_space space)
{
	struct rdma_cm_id *id;
	CHECK(rdma_create_id(channel, &id, NULL, space) == 0);
	return id;
}

static int readable(int fd, int timeout)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	return poll(&p, 1, timeout) == 1;
}

/* expect waits for the next event and returns it. */
static struct rdma_cm_event *expect(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	CHECK(readable(channel->fd, 20000));
	CHECK(rdma_get_cm_event(channel, &event) == 0);
	if (event->event != type)
		printf("%s, want %s, status %d\n", rdma_event_str(event->event), rdma_event_str(type), event->status);
	CHECK(event->event == type);
	return event;
}

static void take(enum rdma_cm_event_type type) { rdma_ack_cm_event(expect(type)); }

static struct rdma_cm_id *new_listener(enum rdma_port_space space, int *port)
{
	struct rdma_cm_id *id = new_id(space);
	CHECK(rdma_bind_addr(id, address("0.0.0.0", 0)) == 0);
	CHECK(rdma_listen(id, 4) == 0);
	*port = ntohs(rdma_get_src_port(id));
	CHECK(*port != 0);
	return id;
}

static struct rdma_cm_id *resolve_at(const char *host, enum rdma_port_space space, int port)
{
	struct rdma_cm_id *id = new_id(space);
	CHECK(rdma_resolve_addr(id, NULL, address(host, port), 1000) == 0);
	take(RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(id->verbs && id->port_num == 1 && id->pd);
	CHECK(rdma_resolve_route(id, 1000) == 0);
	take(RDMA_CM_EVENT_ROUTE_RESOLVED);
	CHECK(id->route.num_paths == 1 && id->route.path_rec->hop_limit > 1);
	return id;
}

static struct rdma_cm_id *resolve(enum rdma_port_space space, int port)
{
	return resolve_at(getenv("SOFTRNIC_ADDR"), space, port);
}

static void create_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = { .qp_type = id->qp_type,
					 .cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 } };
	CHECK(rdma_create_qp(id, NULL, &attr) == 0);
	CHECK(id->qp && id->send_cq && id->recv_cq);
}

#endif
