// Events by descriptors: completion channels and asynchronous events, see
// ibv_get_cq_event(3) and ibv_get_async_event(3).
#define _GNU_SOURCE
#include "engine.h"
#include "_cgo_export.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

int event_queue_open(struct event_queue *queue)
{
	queue->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (queue->fd < 0)
		return errno;
	pthread_mutex_init(&queue->mutex, NULL);
	pthread_cond_init(&queue->acknowledged, NULL);
	queue->last = &queue->first;
	int error = event_queue_reserve(queue); // for events of no object
	if (error)
		event_queue_close(queue);
	return error;
}

static void free_events(struct event *e)
{
	for (struct event *next; e; e = next) {
		next = e->next;
		free(e);
	}
}

void event_queue_close(struct event_queue *queue)
{
	close(queue->fd);
	free_events(queue->first);
	free_events(queue->spare);
	if (softrnic_forked)
		return; // pthread_cond_destroy would wait for threads of the parent
	pthread_mutex_destroy(&queue->mutex);
	pthread_cond_destroy(&queue->acknowledged);
}

// RESERVED is the number of events of each object that are stored where calloc fails.
enum { RESERVED = 2 };

// keep_spare stores a spare event, or frees it. The queue's mutex is held.
static void keep_spare(struct event_queue *queue, struct event *e)
{
	if (queue->spares >= queue->reserved) {
		free(e);
		return;
	}
	e->next = queue->spare;
	queue->spare = e;
	queue->spares++;
}

static struct event *take_spare(struct event_queue *queue)
{
	struct event *e = queue->spare;
	if (e) {
		queue->spare = e->next;
		queue->spares--;
	}
	return e;
}

// event_queue_release frees what event_queue_reserve allocated for an object.
void event_queue_release(struct event_queue *queue)
{
	lock_object(&queue->mutex);
	queue->reserved -= RESERVED;
	while (queue->spares > queue->reserved)
		free(take_spare(queue));
	unlock_object(&queue->mutex);
}

// event_queue_reserve allocates events for an object, so that none of them is lost for want of memory later.
int event_queue_reserve(struct event_queue *queue)
{
	pthread_mutex_lock(&queue->mutex);
	queue->reserved += RESERVED;
	struct event *e = NULL;
	for (int i = 0; i < RESERVED && (e = malloc(sizeof *e)); i++)
		keep_spare(queue, e);
	pthread_mutex_unlock(&queue->mutex);
	if (e)
		return 0;
	event_queue_release(queue);
	return ENOMEM;
}

// event_queue_push appends an event and makes the descriptor readable.
void event_queue_push(struct event_queue *queue, void *object, int type)
{
	struct event *e = calloc(1, sizeof *e);
	pthread_mutex_lock(&queue->mutex);
	if (e || (e = take_spare(queue))) {
		*e = (struct event){.object = object, .type = type};
		*queue->last = e;
		queue->last = &e->next;
		queue->length++;
		eventfd_write(queue->fd, 1);
	}
	pthread_mutex_unlock(&queue->mutex);
}

// event_queue_pop waits for the oldest event, or returns -1 with errno EAGAIN if the
// program made the descriptor non-blocking. *raised_by(event) counts the events of an object
// that were handed out, while the queue's mutex is held.
int event_queue_pop(struct event_queue *queue, struct event *event, uint32_t *raised_by(struct event *))
{
	for (;;) {
		eventfd_t one;
		if (eventfd_read(queue->fd, &one))
			return -1;
		pthread_mutex_lock(&queue->mutex);
		struct event *e = queue->first;
		if (e) {
			queue->first = e->next;
			queue->length--;
			if (!queue->first)
				queue->last = &queue->first;
			*event = *e;
			uint32_t *raised = raised_by(e);
			if (raised)
				++*raised;
			keep_spare(queue, e);
		}
		pthread_mutex_unlock(&queue->mutex);
		if (e)
			return 0; // otherwise event_queue_forget took the event meanwhile
	}
}

// take_count takes one from the count of a semaphore without blocking. Where the kernel cannot,
// or a reader took the count before, a reader finds no event later and waits again.
static void take_count(int fd)
{
	eventfd_t one;
	struct iovec vector = {&one, sizeof one};
	ssize_t n = preadv2(fd, &vector, 1, -1, RWF_NOWAIT);
	(void)n;
}

// event_queue_forget drops the undelivered events of an object that is being destroyed and what was
// reserved for it, and waits until the program has acknowledged the delivered ones.
void event_queue_forget(struct event_queue *queue, void *object, uint32_t *raised, uint32_t *acknowledged)
{
	pthread_mutex_lock(&queue->mutex);
	struct event **link = &queue->first;
	while (*link) {
		struct event *e = *link;
		if (e->object != object) {
			link = &e->next;
			continue;
		}
		*link = e->next;
		queue->length--;
		keep_spare(queue, e);
		take_count(queue->fd);
	}
	queue->last = link;
	while (*raised != *acknowledged)
		pthread_cond_wait(&queue->acknowledged, &queue->mutex);
	pthread_mutex_unlock(&queue->mutex);
	event_queue_release(queue);
}

void event_queue_acknowledge(struct event_queue *queue, uint32_t *acknowledged, unsigned int count)
{
	lock_object(&queue->mutex);
	*acknowledged += count;
	if (!softrnic_forked)
		pthread_cond_broadcast(&queue->acknowledged);
	unlock_object(&queue->mutex);
}

struct ibv_comp_channel *API(ibv_create_comp_channel)(struct ibv_context *context)
{
	if (softrnic_forked)
		return fail_null(EIO);
	struct channel *ch = calloc(1, sizeof *ch);
	if (!ch)
		return NULL;
	int error = event_queue_open(&ch->events);
	if (!error && (error = go_create_channel(context_of(context)->handle, ch, &ch->handle)))
		event_queue_close(&ch->events);
	if (error) {
		free(ch);
		return fail_null(error);
	}
	ch->channel.context = context;
	ch->channel.fd = ch->events.fd;
	return &ch->channel;
}

int API(ibv_destroy_comp_channel)(struct ibv_comp_channel *channel)
{
	struct channel *ch = (struct channel *)channel;
	if (channel->refcnt)
		return fail(EBUSY);
	if (!softrnic_forked) {
		int error = go_destroy(ch->handle);
		if (error)
			return fail(error);
	}
	event_queue_close(&ch->events);
	retire(ch);
	return 0;
}

// raise_completion is called by Go.
void raise_completion(void *channel, void *cq) { event_queue_push(&((struct channel *)channel)->events, cq, 0); }

// raise_async is called by Go. The object is NULL for events of a port or device.
void raise_async(void *context, void *object, int type)
{
	event_queue_push(&((struct context *)context)->async, object, type);
}

static uint32_t *completions_raised(struct event *e) { return &((struct completion_queue *)e->object)->completions_raised; }

int API(ibv_get_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct event e;
	struct channel *ch = (struct channel *)channel;
	if (softrnic_forked)
		return fail(EIO), -1;
	if (!ch->events.length && !(fcntl(channel->fd, F_GETFL) & O_NONBLOCK))
		go_lead_for_event(ch->handle);
	if (event_queue_pop(&ch->events, &e, completions_raised))
		return -1;
	*cq = e.object;
	*cq_context = (*cq)->cq_context;
	return 0;
}

void API(ibv_ack_cq_events)(struct ibv_cq *cq, unsigned int count)
{
	if (cq->channel)
		event_queue_acknowledge(&((struct channel *)cq->channel)->events, &cq->comp_events_completed, count);
}

// async_raised returns the counter of the object that an asynchronous event concerns, or
// NULL for ports and devices.
static uint32_t *async_raised(struct event *e)
{
	switch (e->type) {
	case IBV_EVENT_CQ_ERR:
		return &((struct completion_queue *)e->object)->async_raised;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return &((struct shared_receive_queue *)e->object)->async_raised;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return &((struct queue_pair *)e->object)->async_raised;
	}
	return NULL;
}

int API(ibv_get_async_event)(struct ibv_context *context, struct ibv_async_event *event)
{
	struct event e;
	if (softrnic_forked)
		return fail(EIO), -1;
	if (event_queue_pop(&context_of(context)->async, &e, async_raised))
		return -1;
	event->event_type = e.type;
	if (e.object)
		event->element.qp = e.object;
	else
		event->element.port_num = 1;
	return 0;
}

void API(ibv_ack_async_event)(struct ibv_async_event *event)
{
	struct ibv_context *context;
	uint32_t *acknowledged;
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		context = event->element.cq->context;
		acknowledged = &event->element.cq->async_events_completed;
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		context = event->element.srq->context;
		acknowledged = &event->element.srq->events_completed;
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		context = event->element.qp->context;
		acknowledged = &event->element.qp->events_completed;
		break;
	default:
		return;
	}
	event_queue_acknowledge(&context_of(context)->async, acknowledged, 1);
}
