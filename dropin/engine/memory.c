// Protection domains, memory regions and windows, address handles: ibv_alloc_pd(3),
// ibv_reg_mr(3), ibv_rereg_mr(3), ibv_alloc_mw(3), ibv_create_ah(3), ibv_alloc_td(3),
// ibv_alloc_parent_domain(3).
#define _GNU_SOURCE
#include "engine.h"
#include "_cgo_export.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

struct ibv_pd *API(ibv_alloc_pd)(struct ibv_context *context)
{
	if (softrnic_forked)
		return fail_null(EIO);
	struct protection_domain *pd = calloc(1, sizeof *pd + PRIVATE_ROOM);
	if (!pd)
		return NULL;
	int error = go_alloc_pd(context_of(context)->handle, &pd->pd.handle);
	if (error) {
		free(pd);
		return fail_null(error);
	}
	pd->pd.context = context;
	return &pd->pd;
}

int API(ibv_dealloc_pd)(struct ibv_pd *ibpd)
{
	struct protection_domain *pd = (struct protection_domain *)ibpd;
	if (!ibpd->handle)
		return fail(EINVAL); // deallocated before
	if (pd->children)
		return fail(EBUSY);
	if (pd->thread)
		pd->thread->users--;
	if (pd->parent)
		pd->parent->children--;
	else if (!softrnic_forked) {
		int error = go_destroy(ibpd->handle);
		if (error)
			return fail(error);
	}
	ibpd->handle = 0;
	retire(pd);
	return 0;
}

struct ibv_td *alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	if (attr->comp_mask)
		return fail_null(EINVAL);
	struct thread_domain *td = calloc(1, sizeof *td);
	if (!td)
		return NULL;
	td->td.context = context;
	return &td->td;
}

int dealloc_td(struct ibv_td *td)
{
	if (!td->context)
		return fail(EINVAL); // deallocated before
	if (((struct thread_domain *)td)->users)
		return fail(EBUSY);
	td->context = NULL;
	retire(td);
	return 0;
}

// alloc_parent_domain returns a domain whose objects are those of attr->pd. Queues take locks
// in any case, so that a thread domain changes nothing; custom allocators are for queues in the
// program's memory, which this adapter has none of.
struct ibv_pd *alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	if (!attr->pd || attr->comp_mask & ~known)
		return fail_null(EINVAL);
	struct protection_domain *pd = calloc(1, sizeof *pd + PRIVATE_ROOM);
	if (!pd)
		return NULL;
	pd->parent = (struct protection_domain *)attr->pd;
	pd->parent->children++;
	pd->thread = (struct thread_domain *)attr->td;
	if (pd->thread)
		pd->thread->users++;
	pd->pd.context = context;
	pd->pd.handle = attr->pd->handle;
	return &pd->pd;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	if (softrnic_forked)
		return fail_null(EIO);
	struct memory_region *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	struct ibv_mr *mr = &r->mr;
	void *start = addr;
	size_t size = length;
	if (!addr && length == SIZE_MAX && access & IBV_ACCESS_ON_DEMAND) { // implicit: all addresses, except those of NULL
		start = (void *)(iova = 1 << 12);
		size = ((size_t)1 << 47) - iova;
	}
	int error = go_reg_mr(pd->handle, start, size, iova, access, &mr->handle, &mr->lkey, &mr->rkey);
	if (error) {
		free(r);
		return fail_null(error);
	}
	mr->context = pd->context;
	mr->pd = pd;
	mr->addr = addr;
	mr->length = length;
	return mr;
}

struct ibv_mr *API(ibv_reg_mr)(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return reg_mr(pd, addr, length, (uintptr_t)addr, access);
}

struct ibv_mr *API(ibv_reg_mr_iova)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return reg_mr(pd, addr, length, iova, access);
}

struct ibv_mr *API(ibv_reg_mr_iova2)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	return reg_mr(pd, addr, length, iova, access);
}

int API(ibv_dereg_mr)(struct ibv_mr *mr)
{
	if (!softrnic_forked) {
		int error = go_destroy(mr->handle);
		if (error)
			return fail(error);
	}
	struct memory_region *r = (struct memory_region *)mr;
	if (r->users)
		--*r->users;
	retire(r);
	return 0;
}

// ibv_rereg_mr keeps both keys.
int API(ibv_rereg_mr)(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	if (((struct memory_region *)mr)->users || flags & ~IBV_REREG_MR_FLAGS_SUPPORTED || (flags & IBV_REREG_MR_CHANGE_TRANSLATION && (!length || !addr)) ||
	    (flags & IBV_REREG_MR_CHANGE_PD && !pd) || (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS)) || !flags) {
		errno = EINVAL;
		return IBV_REREG_MR_ERR_INPUT;
	}
	if (softrnic_forked) {
		errno = EIO;
		return IBV_REREG_MR_ERR_CMD;
	}
	struct ibv_pd *next = flags & IBV_REREG_MR_CHANGE_PD ? pd : mr->pd;
	bool moved = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	int error = go_rereg_mr(mr->handle, next->handle, moved ? addr : NULL, moved ? length : 0,
				flags & IBV_REREG_MR_CHANGE_ACCESS ? access : -1);
	if (error) {
		errno = error;
		return IBV_REREG_MR_ERR_CMD;
	}
	mr->pd = next;
	mr->context = next->context;
	if (moved) {
		mr->addr = addr;
		mr->length = length;
	}
	return 0;
}

struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	if (softrnic_forked)
		return fail_null(EIO);
	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return fail_null(EINVAL);
	struct ibv_mw *mw = calloc(1, sizeof *mw);
	if (!mw)
		return NULL;
	int error = go_alloc_mw(pd->handle, type == IBV_MW_TYPE_1, &mw->handle, &mw->rkey);
	if (error) {
		free(mw);
		return fail_null(error);
	}
	mw->context = pd->context;
	mw->pd = pd;
	mw->type = type;
	return mw;
}

// bind_mw binds a window of type 1, which the inline function of the headers checks. The window has its new key
// as soon as the request is posted. Without a length, or a region, the window is unbound.
int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	const struct ibv_mw_bind_info *info = &bind->bind_info;
	if ((!info->mr && (info->addr || info->length)) || info->mw_access_flags & IBV_ACCESS_ZERO_BASED || mw->pd->handle != qp->pd->handle)
		return fail(EINVAL);
	struct ibv_send_wr wr = {.wr_id = bind->wr_id, .opcode = IBV_WR_BIND_MW, .send_flags = bind->send_flags}, *bad;
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = *info;
	int error = post_send(qp, &wr, &bad);
	if (!error)
		mw->rkey = wr.bind_mw.rkey;
	return error;
}

int dealloc_mw(struct ibv_mw *mw)
{
	if (!softrnic_forked) {
		int error = go_destroy(mw->handle);
		if (error)
			return fail(error);
	}
	retire(mw);
	return 0;
}

// is_librdmacm reports whether code belongs to librdmacm.
static bool is_librdmacm(void *code)
{
	Dl_info info;
	return dladdr(code, &info) && info.dli_fname && strstr(info.dli_fname, "librdmacm");
}

// ibv_create_ah refuses an address without a GID, as RoCE has none. Only rsockets of librdmacm
// have one, by the local LID, for datagrams to themselves. The preloaded library jumps here, so that the
// return address is that of the caller.
struct ibv_ah *API(ibv_create_ah)(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	if (softrnic_forked)
		return fail_null(EIO);
	if (!attr->is_global && !is_librdmacm(__builtin_return_address(0)))
		return fail_null(EINVAL);
	struct ibv_ah *ah = calloc(1, sizeof *ah + PRIVATE_ROOM);
	if (!ah)
		return NULL;
	int error = go_create_ah(pd->handle, attr, &ah->handle);
	if (error) {
		free(ah);
		return fail_null(error);
	}
	ah->context = pd->context;
	ah->pd = pd;
	return ah;
}

int API(ibv_destroy_ah)(struct ibv_ah *ah)
{
	if (!softrnic_forked) {
		int error = go_destroy(ah->handle);
		if (error)
			return fail(error);
	}
	retire(ah);
	return 0;
}

// ibv_init_ah_from_wc makes the address of the sender of a datagram, see RoCE v2's rules for
// the GRH area of an IPv4 packet: its last 20 bytes are the IPv4 header (IBTA annex A17).
int API(ibv_init_ah_from_wc)(struct ibv_context *context, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh,
			     struct ibv_ah_attr *attr)
{
	(void)context;
	memset(attr, 0, sizeof *attr);
	attr->port_num = port;
	attr->sl = wc->sl;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	attr->is_global = 1;
	const uint8_t *ip = (const uint8_t *)grh + 20;
	if ((be32toh(grh->version_tclass_flow) >> 28) != 6 && ip[0] >> 4 == 4) {
		attr->grh.dgid.raw[10] = attr->grh.dgid.raw[11] = 0xff;
		memcpy(attr->grh.dgid.raw + 12, ip + 12, 4);
		attr->grh.traffic_class = ip[1];
	} else {
		uint32_t word = be32toh(grh->version_tclass_flow);
		attr->grh.dgid = grh->sgid;
		attr->grh.flow_label = word & 0xfffff;
		attr->grh.traffic_class = word >> 20;
	}
	attr->grh.hop_limit = 64;
	return 0;
}

struct ibv_ah *API(ibv_create_ah_from_wc)(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
	struct ibv_ah_attr attr;
	int error = softrnic_ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr);
	return error ? NULL : softrnic_ibv_create_ah(pd, &attr);
}
