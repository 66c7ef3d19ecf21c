// Shared declarations of the C layer: the objects behind the handles of libibverbs, and
// the requests that it hands to Go.
#ifndef SOFTRNIC_ENGINE_H
#define SOFTRNIC_ENGINE_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// API(name) is the definition of a public function. The prefix keeps it apart
// from the declarations and macros of the headers; the preloaded library adds it.
#define API(name) softrnic_##name

// BATCH is the number of work requests that one call hands to Go.
#define BATCH 16

// PRIVATE_ROOM is zeroed room behind structures that providers extend. libmlx5, libefa and
// libmlx4 look there for words of their own before they decide that a device is not theirs.
#define PRIVATE_ROOM 1024

// MAX_DM_SIZE is the number of bytes of device memory that a process can allocate: that of a ConnectX-5.
#define MAX_DM_SIZE (256 << 10)

// Values of rdma-core 46 and later.
#define WITH_FLUSH (1 << 11)                            // IBV_QP_EX_WITH_FLUSH
#define WR_FLUSH 14                                     // IBV_WR_FLUSH
#define ODP_SUPPORT_FLUSH_AND_WRITE (1 << 6 | 1 << 7)   // IBV_ODP_SUPPORT_FLUSH, IBV_ODP_SUPPORT_ATOMIC_WRITE
#define DEVICE_FLUSH_AND_WRITE (1ull << 38 | 1ull << 40) // IB_UVERBS_DEVICE_FLUSH_GLOBAL, IB_UVERBS_DEVICE_ATOMIC_WRITE
#define FLUSH_SLOT (offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(void *)) // of wr_flush in struct ibv_qp_ex

// A send_request is an ibv_send_wr without its union.
struct send_request {
	uint64_t wr_id;
	void *sges; // struct ibv_sge
	uint32_t nsge;
	uint32_t opcode, flags;
	uint32_t imm;      // host byte order
	uint32_t inv_rkey;
	uint32_t rkey;
	uint64_t remote_addr;
	uint64_t compare_add, swap;
	uint32_t ah, remote_qpn, remote_qkey; // UD
	uint32_t mw, mr, bind_rkey, bind_access; // BIND_MW
	uint64_t bind_addr, bind_length;
	uint32_t flush_length;
	uint8_t flush_placement, flush_selectivity;
};

// A recv_request is an ibv_recv_wr without its link.
struct recv_request {
	uint64_t wr_id;
	void *sges;
	uint32_t nsge;
};

struct device {
	struct ibv_device device; // first: the pointer that programs have
	char room[PRIVATE_ROOM];
	int index;
};

// An event_queue backs a descriptor that programs poll: the descriptor is a semaphore
// (EFD_SEMAPHORE) that counts the events of the list.
struct event_queue {
	pthread_mutex_t mutex;
	pthread_cond_t acknowledged;
	int fd;
	_Atomic int32_t length;
	struct event *first, **last;
	struct event *spare; // for want of memory, where events must not get lost
	int spares, reserved;
};

struct event {
	struct event *next;
	void *object; // the ibv_cq, ibv_qp, ... concerned
	int type;     // enum ibv_event_type of an asynchronous event
};

struct context {
	struct verbs_context verbs; // the ibv_context is its last field
	char room[PRIVATE_ROOM];
	uint32_t handle;
	struct event_queue async;
	struct ibv_device_attr attr; // for children by fork
	struct context *next;        // of the open contexts
	struct context *original;    // of an imported one
	int users;                   // 1 while open, and those imported from it; guarded by contexts_mutex
};

struct channel {
	struct ibv_comp_channel channel;
	uint32_t handle;
	struct event_queue events;
};

// The completion_times of a completion are in nanoseconds: of the clock of the device, and since 1970.
struct completion_times {
	uint64_t device, wall;
};

struct completion_queue {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex ex;
	} v;
	uint32_t completions_raised, async_raised; // events handed to the program
	bool timed;               // an extended queue with timestamps
	struct ibv_wc wc;         // of an extended queue: the current completion
	struct completion_times times;
};

struct queue_pair {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex ex;
		char room[FLUSH_SLOT + 8 * sizeof(void *)]; // that of later headers is longer
	} v;
	uint32_t async_raised;
	bool extended; // created with send_ops_flags: ibv_wr_start and so on are valid
	struct builder *builder;
};

struct shared_receive_queue {
	struct ibv_srq srq;
	uint32_t async_raised;
};

struct memory_region {
	struct ibv_mr mr;
	_Atomic int *users; // of device memory: its number of regions
	char room[PRIVATE_ROOM];
};

struct thread_domain {
	struct ibv_td td;
	_Atomic int users; // parent domains
};

struct protection_domain {
	struct ibv_pd pd;
	struct protection_domain *parent; // of a parent domain: the real one
	struct thread_domain *thread;
	_Atomic int children;
};

static inline struct context *context_of(struct ibv_context *context)
{
	return (struct context *)((char *)context - offsetof(struct verbs_context, context));
}

// softrnic_forked reports whether this process is a child by fork of the one that loaded the
// engine. It has none of the engine's threads, so no call may reach Go. It is also set at the end of a process that a
// handler of a signal has ended by exit.
extern bool softrnic_forked;

// ends_elsewhere reports whether another thread ends the process. With hardware, posting and polling go on until the
// process is gone: here requests are accepted then and never complete, so that this thread sees no error.
bool ends_elsewhere(void);

// lock_object locks a mutex of an object. In a child by fork, a thread that the child does not have
// may hold it for ever, and no thread raises events.
static inline void lock_object(pthread_mutex_t *mutex)
{
	if (!softrnic_forked)
		pthread_mutex_lock(mutex);
}

static inline void unlock_object(pthread_mutex_t *mutex)
{
	if (!softrnic_forked)
		pthread_mutex_unlock(mutex);
}

static inline int fail(int error)
{
	if (error)
		errno = error;
	return error;
}

// fail_null sets errno and returns NULL.
static inline void *fail_null(int error)
{
	errno = error;
	return NULL;
}

void retire(void *object);
void restore_signals(void);

int event_queue_open(struct event_queue *queue);
int event_queue_reserve(struct event_queue *queue);
void event_queue_release(struct event_queue *queue);
void event_queue_close(struct event_queue *queue);
void event_queue_push(struct event_queue *queue, void *object, int type);
int event_queue_pop(struct event_queue *queue, struct event *event, uint32_t *raised_by(struct event *));
void event_queue_forget(struct event_queue *queue, void *object, uint32_t *raised, uint32_t *acknowledged);
void event_queue_acknowledge(struct event_queue *queue, uint32_t *acknowledged, unsigned int count);

void raise_completion(void *channel, void *cq);
void raise_async(void *context, void *object, int type);

struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc);
int req_notify_cq(struct ibv_cq *cq, int solicited_only);
int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
void install_builder(struct queue_pair *qp);
void remove_builder(struct queue_pair *qp);
struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int dealloc_mw(struct ibv_mw *mw);
struct ibv_td *alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int dealloc_td(struct ibv_td *td);
struct ibv_pd *alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr);
void install_extras(struct verbs_context *context);
int get_srq_num(struct ibv_srq *srq, uint32_t *number);

#endif
