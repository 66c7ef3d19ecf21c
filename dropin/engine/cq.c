// Completion queues, also extended ones: ibv_create_cq(3), ibv_create_cq_ex(3), ibv_poll_cq(3).
#include "engine.h"
#include "_cgo_export.h"

#include <stdlib.h>
#include <string.h>

int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	int n = softrnic_forked ? -EIO : count <= 0 ? count : go_poll_cq(cq->handle, count, wc);
	return n && ends_elsewhere() ? 0 : n;
}

int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return softrnic_forked ? fail(EIO) : fail(go_req_notify(cq->handle, solicited_only));
}

int modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	(void)cq, (void)attr;
	return EOPNOTSUPP; // moderation of events
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	if (attr->comp_mask)
		return EINVAL;
	struct completion_queue *q = (struct completion_queue *)cq;
	int n = !q->timed ? poll_cq(&q->v.cq, 1, &q->wc) :
		softrnic_forked ? -EIO : go_poll_timed_cq(q->v.cq.handle, &q->wc, &q->times);
	if (!n || ends_elsewhere())
		return ENOENT;
	if (n < 0)
		return EIO;
	cq->wr_id = q->wc.wr_id;
	cq->status = q->wc.status;
	return 0;
}

static int next_poll(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr none = {};
	return start_poll(cq, &none);
}

static void end_poll(struct ibv_cq_ex *cq) { (void)cq; }

#define READ(type, name, field)                                                    \
	static type name(struct ibv_cq_ex *cq) { return ((struct completion_queue *)cq)->wc.field; }
READ(enum ibv_wc_opcode, read_opcode, opcode)
READ(uint32_t, read_vendor_err, vendor_err)
READ(uint32_t, read_byte_len, byte_len)
READ(__be32, read_imm_data, imm_data)
READ(uint32_t, read_qp_num, qp_num)
READ(uint32_t, read_src_qp, src_qp)
READ(unsigned int, read_wc_flags, wc_flags)
READ(uint32_t, read_slid, slid)
READ(uint8_t, read_sl, sl)
READ(uint8_t, read_dlid_path_bits, dlid_path_bits)

static uint64_t read_completion_ts(struct ibv_cq_ex *cq) { return ((struct completion_queue *)cq)->times.device; }

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *cq) { return ((struct completion_queue *)cq)->times.wall; }

// create makes a completion queue with room for the fields of an extended one.
static struct completion_queue *create(struct ibv_context *context, uint32_t depth, void *cq_context,
				       struct ibv_comp_channel *channel, uint32_t vector)
{
	if (softrnic_forked)
		return fail_null(EIO);
	if (vector >= (uint32_t)context->num_comp_vectors || depth == 0 || depth > INT32_MAX)
		return fail_null(EINVAL);
	struct completion_queue *q = calloc(1, sizeof *q + PRIVATE_ROOM);
	if (!q)
		return NULL;
	struct ibv_cq *cq = &q->v.cq;
	cq->context = context;
	cq->channel = channel;
	cq->cq_context = cq_context;
	cq->cqe = depth;
	pthread_mutex_init(&cq->mutex, NULL);
	pthread_cond_init(&cq->cond, NULL);
	struct event_queue *async = &context_of(context)->async, *events = channel ? &((struct channel *)channel)->events : NULL;
	int error = event_queue_reserve(async);
	if (error)
		return free(q), fail_null(error);
	if (events && (error = event_queue_reserve(events)))
		events = NULL;
	if (!error)
		error = go_create_cq(context_of(context)->handle, channel ? ((struct channel *)channel)->handle : 0, q,
				     &cq->handle, &cq->cqe);
	if (error) {
		event_queue_release(async);
		if (events)
			event_queue_release(events);
		free(q);
		return fail_null(error);
	}
	if (channel) {
		pthread_mutex_lock(&context->mutex);
		channel->refcnt++;
		pthread_mutex_unlock(&context->mutex);
	}
	return q;
}

struct ibv_cq *API(ibv_create_cq)(struct ibv_context *context, int depth, void *cq_context,
				  struct ibv_comp_channel *channel, int vector)
{
	return depth <= 0 ? fail_null(EINVAL) : (struct ibv_cq *)create(context, depth, cq_context, channel, vector);
}

struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	const uint32_t known_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
	const uint32_t known_flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	if (attr->comp_mask & ~known_mask)
		return fail_null(EOPNOTSUPP);
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS && attr->flags & ~known_flags)
		return fail_null(EOPNOTSUPP);
	const uint64_t times = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	if (attr->wc_flags & ~(IBV_WC_STANDARD_FLAGS | times))
		return fail_null(EOPNOTSUPP); // VLANs, flow tags, tag matching
	struct completion_queue *q = create(context, attr->cqe, attr->cq_context, attr->channel, attr->comp_vector);
	if (!q)
		return NULL;
	struct ibv_cq_ex *cq = &q->v.ex;
	cq->start_poll = start_poll;
	cq->next_poll = next_poll;
	cq->end_poll = end_poll;
	cq->read_opcode = read_opcode;
	cq->read_vendor_err = read_vendor_err;
	cq->read_wc_flags = read_wc_flags;
	cq->read_byte_len = read_byte_len;
	cq->read_imm_data = read_imm_data;
	cq->read_qp_num = read_qp_num;
	cq->read_src_qp = read_src_qp;
	cq->read_slid = read_slid;
	cq->read_sl = read_sl;
	cq->read_dlid_path_bits = read_dlid_path_bits;
	if (attr->wc_flags & times) {
		q->timed = true;
		go_record_times(cq->handle);
		cq->read_completion_ts = read_completion_ts;
		cq->read_completion_wallclock_ns = read_completion_wallclock_ns;
	}
	return cq;
}

int API(ibv_resize_cq)(struct ibv_cq *cq, int depth)
{
	if (softrnic_forked)
		return fail(EIO);
	return depth <= 0 ? fail(EINVAL) : fail(go_resize_cq(cq->handle, &depth)) ? errno : (cq->cqe = depth, 0);
}

int API(ibv_destroy_cq)(struct ibv_cq *cq)
{
	struct completion_queue *q = (struct completion_queue *)cq;
	if (!softrnic_forked) {
		int error = go_destroy(cq->handle);
		if (error)
			return fail(error);
		event_queue_forget(&context_of(cq->context)->async, cq, &q->async_raised, &cq->async_events_completed);
	}
	if (cq->channel) {
		if (!softrnic_forked)
			event_queue_forget(&((struct channel *)cq->channel)->events, cq, &q->completions_raised,
					   &cq->comp_events_completed);
		lock_object(&cq->context->mutex);
		cq->channel->refcnt--;
		unlock_object(&cq->context->mutex);
	}
	retire(q);
	return 0;
}
