// Work requests built by calls, see ibv_wr_post(3): ibv_wr_start, ibv_wr_send, ...,
// ibv_wr_complete. The requests of one ibv_wr_start are posted together, or none is.
#include "engine.h"
#include "_cgo_export.h"

#include <stdlib.h>
#include <string.h>

// A builder holds the requests since ibv_wr_start and the memory that they refer to.
struct builder {
	pthread_mutex_t mutex; // from ibv_wr_start to ibv_wr_complete or ibv_wr_abort
	int error;             // of the first call that failed
	struct send_request *requests;
	uint32_t count, room;
	char *data; // scatter/gather lists; requests hold offsets until they are posted
	size_t used, size;
};

static struct builder *builder_of(struct ibv_qp_ex *qp) { return ((struct queue_pair *)qp)->builder; }

static struct send_request *add(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode)
{
	static __thread struct send_request spare; // of a request that cannot be stored
	struct builder *b = builder_of(qp);
	if (b->count == b->room) {
		uint32_t room = b->room ? 2 * b->room : BATCH;
		struct send_request *more = realloc(b->requests, room * sizeof *more);
		if (!more) {
			b->error = ENOMEM;
			return &spare;
		}
		b->requests = more;
		b->room = room;
	}
	struct send_request *r = &b->requests[b->count++];
	*r = (struct send_request){.wr_id = qp->wr_id, .opcode = opcode, .flags = qp->wr_flags & ~(uint32_t)IBV_SEND_INLINE};
	return r;
}

static struct send_request *current(struct builder *b) { return b->count ? &b->requests[b->count - 1] : NULL; }

// reserve returns the offset of room in data, aligned for a struct ibv_sge.
static size_t reserve(struct builder *b, size_t size)
{
	size_t start = (b->used + 15) & ~(size_t)15;
	if (start + size > b->size) {
		size_t next = 2 * (start + size);
		char *more = realloc(b->data, next);
		if (!more) {
			b->error = ENOMEM;
			return 0;
		}
		b->data = more;
		b->size = next;
	}
	b->used = start + size;
	return start;
}

static void wr_rdma(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr, uint32_t imm)
{
	struct send_request *r = add(qp, opcode);
	r->rkey = rkey;
	r->remote_addr = addr;
	r->imm = imm;
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr) { wr_rdma(qp, IBV_WR_RDMA_WRITE, rkey, addr, 0); }

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, __be32 imm)
{
	wr_rdma(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr, be32toh(imm));
}

static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr) { wr_rdma(qp, IBV_WR_RDMA_READ, rkey, addr, 0); }

static void wr_atomic(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr, uint64_t operand, uint64_t swap)
{
	struct send_request *r = add(qp, opcode);
	r->rkey = rkey;
	r->remote_addr = addr;
	r->compare_add = operand;
	r->swap = swap;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t compare, uint64_t swap)
{
	wr_atomic(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t operand)
{
	wr_atomic(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr, operand, 0);
}

static void wr_send(struct ibv_qp_ex *qp) { add(qp, IBV_WR_SEND); }

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm) { add(qp, IBV_WR_SEND_WITH_IMM)->imm = be32toh(imm); }

static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t rkey) { add(qp, IBV_WR_SEND_WITH_INV)->inv_rkey = rkey; }

static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t rkey) { add(qp, IBV_WR_LOCAL_INV)->inv_rkey = rkey; }

static void wr_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct send_request *r = add(qp, IBV_WR_BIND_MW);
	r->mw = mw->handle;
	r->bind_rkey = rkey;
	r->mr = info->mr ? info->mr->handle : 0;
	r->bind_addr = info->addr;
	r->bind_length = info->length;
	r->bind_access = info->mw_access_flags;
}

static void wr_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length);

static void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, const void *word)
{
	wr_rdma(qp, IBV_WR_ATOMIC_WRITE, rkey, addr, 0);
	wr_set_inline_data(qp, (void *)word, 8);
}

static void wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t length, uint8_t type, uint8_t level)
{
	struct send_request *r = add(qp, WR_FLUSH);
	r->rkey = rkey;
	r->remote_addr = addr;
	r->flush_length = length;
	r->flush_placement = type;
	r->flush_selectivity = level;
	if (length > UINT32_MAX)
		builder_of(qp)->error = EINVAL;
}

static void wr_set_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct send_request *r = current(builder_of(qp));
	if (!r)
		return;
	r->ah = ah->handle;
	r->remote_qpn = remote_qpn;
	r->remote_qkey = remote_qkey;
}

static void wr_set_sge_list(struct ibv_qp_ex *qp, size_t count, const struct ibv_sge *sges)
{
	struct builder *b = builder_of(qp);
	struct send_request *r = current(b);
	if (!r)
		return;
	size_t at = reserve(b, count * sizeof *sges);
	if (b->error)
		return;
	memcpy(b->data + at, sges, count * sizeof *sges);
	r->sges = (void *)at;
	r->nsge = count;
}

static void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};
	wr_set_sge_list(qp, 1, &sge);
}

// wr_set_inline_data_list copies the data, since the program may reuse it before
// ibv_wr_complete. The request refers to it by elements whose addresses are offsets.
static void wr_set_inline_data_list(struct ibv_qp_ex *qp, size_t count, const struct ibv_data_buf *buffers)
{
	struct builder *b = builder_of(qp);
	struct send_request *r = current(b);
	if (!r)
		return;
	size_t length = 0;
	for (size_t i = 0; i < count; i++)
		length += buffers[i].length;
	size_t at = reserve(b, sizeof(struct ibv_sge) + length);
	if (b->error)
		return;
	struct ibv_sge sge = {.addr = at + sizeof sge, .length = length};
	memcpy(b->data + at, &sge, sizeof sge);
	char *to = b->data + sge.addr;
	for (size_t i = 0; i < count; to += buffers[i++].length)
		memcpy(to, buffers[i].addr, buffers[i].length);
	r->sges = (void *)at;
	r->nsge = 1;
	r->flags |= IBV_SEND_INLINE;
}

static void wr_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length)
{
	struct ibv_data_buf buffer = {.addr = addr, .length = length};
	wr_set_inline_data_list(qp, 1, &buffer);
}

static void wr_start(struct ibv_qp_ex *qp)
{
	struct builder *b = builder_of(qp);
	lock_object(&b->mutex);
	b->error = 0;
	b->count = 0;
	b->used = 0;
}

static int wr_complete(struct ibv_qp_ex *qp)
{
	struct builder *b = builder_of(qp);
	for (uint32_t i = 0; i < b->count; i++) {
		struct send_request *r = &b->requests[i];
		if (!r->nsge)
			continue;
		struct ibv_sge *sges = (struct ibv_sge *)(b->data + (size_t)r->sges);
		if (r->flags & IBV_SEND_INLINE)
			sges->addr += (uintptr_t)b->data;
		r->sges = sges;
	}
	int error = b->error;
	if (!error && b->count)
		error = softrnic_forked ? EIO : go_post_all(qp->qp_base.handle, b->requests, b->count);
	unlock_object(&b->mutex);
	return error && !ends_elsewhere() ? fail(error) : 0;
}

static void wr_abort(struct ibv_qp_ex *qp) { unlock_object(&builder_of(qp)->mutex); }

void install_builder(struct queue_pair *q)
{
	struct ibv_qp_ex *qp = &q->v.ex;
	q->builder = calloc(1, sizeof *q->builder);
	if (!q->builder)
		return;
	pthread_mutex_init(&q->builder->mutex, NULL);
	q->extended = true;
	qp->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	qp->wr_atomic_fetch_add = wr_atomic_fetch_add;
	qp->wr_atomic_write = wr_atomic_write;
	*(void (**)(struct ibv_qp_ex *, uint32_t, uint64_t, size_t, uint8_t, uint8_t))(q->v.room + FLUSH_SLOT) = wr_flush;
	qp->wr_bind_mw = wr_bind_mw;
	qp->wr_local_inv = wr_local_inv;
	qp->wr_rdma_read = wr_rdma_read;
	qp->wr_rdma_write = wr_rdma_write;
	qp->wr_rdma_write_imm = wr_rdma_write_imm;
	qp->wr_send = wr_send;
	qp->wr_send_imm = wr_send_imm;
	qp->wr_send_inv = wr_send_inv;
	qp->wr_set_ud_addr = wr_set_ud_addr;
	qp->wr_set_inline_data = wr_set_inline_data;
	qp->wr_set_inline_data_list = wr_set_inline_data_list;
	qp->wr_set_sge = wr_set_sge;
	qp->wr_set_sge_list = wr_set_sge_list;
	qp->wr_start = wr_start;
	qp->wr_complete = wr_complete;
	qp->wr_abort = wr_abort;
}

void remove_builder(struct queue_pair *q)
{
	if (!q->builder)
		return;
	free(q->builder->requests);
	free(q->builder->data);
	free(q->builder);
}
