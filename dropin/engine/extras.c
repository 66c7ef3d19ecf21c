// Features of memory that the kernel gives real adapters: on-demand paging (ibv_advise_mr(3)) and
// device memory (ibv_alloc_dm(3)), which is memory of this process here.
#include "engine.h"
#include "_cgo_export.h"

#include <stdlib.h>
#include <string.h>

// A block is device memory. Several structures may stand for it: see ibv_import_dm(3).
struct block {
	struct block *next;
	uint32_t handle;
	char *data;
	size_t length;
	_Atomic int regions;
	int structures; // guarded by blocks_mutex
};

struct device_memory {
	struct ibv_dm dm;
	struct block *block;
};

static pthread_mutex_t blocks_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct block *blocks; // not freed by ibv_free_dm
static size_t used;          // bytes of all blocks
static uint32_t last_handle;

// Another thread may have held the mutex when the process forked.
static void reset_mutex(void) { pthread_mutex_init(&blocks_mutex, NULL); }

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, reset_mutex); }

static struct block *block_of(struct ibv_dm *dm) { return ((struct device_memory *)dm)->block; }

static int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sges, uint32_t count)
{
	if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return fail(EOPNOTSUPP);
	if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH || !count)
		return fail(EINVAL);
	return softrnic_forked ? fail(EIO) : fail(go_advise_mr(pd->handle, advice, sges, count));
}

// check_access checks an access of the program, which hardware does in words of 4 bytes.
static int check_access(struct block *b, uint64_t offset, size_t length)
{
	if (offset > b->length || length > b->length - offset)
		return EFAULT;
	return offset % 4 || length % 4 ? EINVAL : 0;
}

static int copy_to_dm(struct ibv_dm *dm, uint64_t offset, const void *from, size_t length)
{
	struct block *b = block_of(dm);
	int error = check_access(b, offset, length);
	if (!error)
		memcpy(b->data + offset, from, length);
	return fail(error);
}

static int copy_from_dm(void *to, struct ibv_dm *dm, uint64_t offset, size_t length)
{
	struct block *b = block_of(dm);
	int error = check_access(b, offset, length);
	if (!error)
		memcpy(to, b->data + offset, length);
	return fail(error);
}

// new_structure returns a structure for a block. blocks_mutex is held.
static struct ibv_dm *new_structure(struct ibv_context *context, struct block *b)
{
	struct device_memory *m = calloc(1, sizeof *m);
	if (!m)
		return NULL;
	b->structures++;
	m->block = b;
	m->dm.context = context;
	m->dm.handle = b->handle;
	m->dm.memcpy_to_dm = copy_to_dm;
	m->dm.memcpy_from_dm = copy_from_dm;
	return &m->dm;
}

static struct ibv_dm *alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	if (attr->comp_mask || !attr->length || attr->length > MAX_DM_SIZE || attr->log_align_req > 12)
		return fail_null(EINVAL);
	struct block *b = calloc(1, sizeof *b);
	size_t align = attr->log_align_req > 6 ? (size_t)1 << attr->log_align_req : 64;
	size_t size = (attr->length + align) / align * align; // a region of no bytes at the end has a valid address
	if (!b || !(b->data = aligned_alloc(align, size))) {
		free(b);
		return fail_null(ENOMEM);
	}
	memset(b->data, 0, size);
	b->length = attr->length;
	struct ibv_dm *dm = NULL;
	pthread_mutex_lock(&blocks_mutex);
	if (used + b->length <= MAX_DM_SIZE && (dm = new_structure(context, b))) {
		used += b->length;
		dm->handle = b->handle = ++last_handle;
		b->next = blocks;
		blocks = b;
	}
	pthread_mutex_unlock(&blocks_mutex);
	if (!dm) {
		free(b->data);
		free(b);
		return fail_null(ENOMEM);
	}
	return dm;
}

// release frees a structure, and the block with the last one.
static void release(struct ibv_dm *dm)
{
	struct block *b = block_of(dm);
	pthread_mutex_lock(&blocks_mutex);
	bool last = --b->structures == 0;
	pthread_mutex_unlock(&blocks_mutex);
	if (last) {
		free(b->data);
		free(b);
	}
	free(dm);
}

static int free_dm(struct ibv_dm *dm)
{
	struct block *b = block_of(dm);
	if (b->regions)
		return fail(EBUSY);
	pthread_mutex_lock(&blocks_mutex);
	for (struct block **link = &blocks; *link; link = &(*link)->next) {
		if (*link == b) {
			*link = b->next;
			used -= b->length;
			break;
		}
	}
	pthread_mutex_unlock(&blocks_mutex);
	release(dm);
	return 0;
}

struct ibv_dm *API(ibv_import_dm)(struct ibv_context *context, uint32_t handle)
{
	pthread_mutex_lock(&blocks_mutex);
	struct block *b = blocks;
	while (b && b->handle != handle)
		b = b->next;
	struct ibv_dm *dm = b ? new_structure(context, b) : NULL;
	pthread_mutex_unlock(&blocks_mutex);
	return b ? dm : fail_null(EINVAL);
}

void API(ibv_unimport_dm)(struct ibv_dm *dm) { release(dm); }

// reg_dm_mr registers a part of device memory, whose addresses begin at 0.
static struct ibv_mr *reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length, unsigned int access)
{
	struct block *b = block_of(dm);
	if (!(access & IBV_ACCESS_ZERO_BASED) || offset > b->length || length > b->length - offset)
		return fail_null(EINVAL);
	if (softrnic_forked)
		return fail_null(EIO);
	struct memory_region *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	struct ibv_mr *mr = &r->mr;
	int error = go_reg_mr(pd->handle, b->data + offset, length ? length : 1, 0, length ? access : IBV_ACCESS_ZERO_BASED,
			      &mr->handle, &mr->lkey, &mr->rkey);
	if (error) {
		free(r);
		return fail_null(error);
	}
	mr->context = pd->context;
	mr->pd = pd;
	mr->length = length;
	r->users = &b->regions;
	b->regions++;
	return mr;
}

void install_extras(struct verbs_context *v)
{
	v->advise_mr = advise_mr;
	v->alloc_dm = alloc_dm;
	v->free_dm = free_dm;
	v->reg_dm_mr = reg_dm_mr;
}
