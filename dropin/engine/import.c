// Objects of other contexts of the process: ibv_import_device(3), ibv_import_pd(3), ibv_import_mr(3). A context of another
// process cannot be imported: the adapter is in that process.
#include "engine.h"
#include "_cgo_export.h"

#include <stdlib.h>

struct ibv_pd *API(ibv_import_pd)(struct ibv_context *context, uint32_t handle)
{
	if (softrnic_forked)
		return fail_null(EIO);
	int error = go_check_pd(handle);
	if (error)
		return fail_null(error);
	struct protection_domain *pd = calloc(1, sizeof *pd + PRIVATE_ROOM);
	if (!pd)
		return NULL;
	pd->pd.context = context;
	pd->pd.handle = handle;
	return &pd->pd;
}

void API(ibv_unimport_pd)(struct ibv_pd *pd) { free(pd); }

struct ibv_mr *API(ibv_import_mr)(struct ibv_pd *pd, uint32_t handle)
{
	if (softrnic_forked)
		return fail_null(EIO);
	struct memory_region *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	struct ibv_mr *mr = &r->mr;
	int error = go_import_mr(pd->handle, handle, &mr->length, &mr->lkey, &mr->rkey);
	if (error) {
		free(r);
		return fail_null(error);
	}
	mr->context = pd->context;
	mr->pd = pd;
	mr->handle = handle;
	return mr;
}

void API(ibv_unimport_mr)(struct ibv_mr *mr) { free(mr); }
