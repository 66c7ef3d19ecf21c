// The interface of librdmacm to the kernel, <rdma/rdma_user_cm.h>, on sockets. See rdmacm.c.
#ifndef SOFTRNIC_RDMACM_H
#define SOFTRNIC_RDMACM_H

#include <errno.h>
#include <netinet/in.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_cm.h>
#include <stddef.h>
#include <stdint.h>

// Types of events, enum rdma_cm_event_type of <rdma/rdma_cma.h>.
enum {
	CM_ADDR_RESOLVED,
	CM_ADDR_ERROR,
	CM_ROUTE_RESOLVED,
	CM_ROUTE_ERROR,
	CM_CONNECT_REQUEST,
	CM_CONNECT_RESPONSE,
	CM_CONNECT_ERROR,
	CM_UNREACHABLE,
	CM_REJECTED,
	CM_ESTABLISHED,
	CM_DISCONNECTED,
	CM_DEVICE_REMOVAL,
	CM_MULTICAST_JOIN,
	CM_MULTICAST_ERROR,
	CM_ADDR_CHANGE,
	CM_TIMEWAIT_EXIT
};

// cm_pointer converts the address in a command.
static inline void *cm_pointer(uint64_t address) { return (void *)(uintptr_t)address; }

#endif
