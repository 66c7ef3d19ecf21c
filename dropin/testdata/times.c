// Completions with times: IBV_WC_EX_WITH_COMPLETION_TIMESTAMP and _WALLCLOCK, and the clock of the device. Prints ok.
#include "pair.h"

#include <time.h>

static uint64_t clock_of(struct ibv_context *context)
{
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	CHECK(!ibv_query_rt_values_ex(context, &values));
	CHECK(values.comp_mask == IBV_VALUES_MASK_RAW_CLOCK);
	return values.raw_clock.tv_sec * 1000000000ull + values.raw_clock.tv_nsec;
}

static uint64_t wall_time(void)
{
	struct timespec now;
	CHECK(!clock_gettime(CLOCK_REALTIME, &now));
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

int main(void)
{
	struct ibv_context *context = open_first();
	struct ibv_device_attr_ex device;
	CHECK(!ibv_query_device_ex(context, NULL, &device));
	CHECK(device.completion_timestamp_mask == UINT64_MAX && device.hca_core_clock == 1000000);
	struct ibv_values_ex unknown = {.comp_mask = 1u << 31};
	CHECK(ibv_query_rt_values_ex(context, &unknown) == EINVAL);

	struct ibv_pd *pd = ibv_alloc_pd(context);
	static char memory[64];
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof memory, ALL_ACCESS);
	struct ibv_cq_init_attr_ex attr = {.cqe = 16, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
					   IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK | IBV_WC_EX_WITH_BYTE_LEN};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(context, &attr);
	CHECK(pd && mr && cq);
	struct ibv_qp *a = create_qp(pd, ibv_cq_ex_to_cq(cq), NULL, IBV_QPT_RC, 8);
	struct ibv_qp *b = create_qp(pd, ibv_cq_ex_to_cq(cq), NULL, IBV_QPT_RC, 8);
	CHECK(a && b);
	connect_qps(a, b);
	uint64_t before = clock_of(context), wall_before = wall_time();
	for (int i = 0; i < 4; i++)
		CHECK(!post_write(a, mr, mr, 32, i));
	struct ibv_poll_cq_attr poll = {0};
	int polled = 0, result;
	while ((result = ibv_start_poll(cq, &poll)) == ENOENT)
		;
	for (;; polled++) {
		CHECK(!result && cq->status == IBV_WC_SUCCESS && cq->wr_id == (uint64_t)polled);
		uint64_t at = ibv_wc_read_completion_ts(cq), wall = ibv_wc_read_completion_wallclock_ns(cq);
		CHECK(before <= at && at <= clock_of(context));
		uint64_t after = wall_time() + 1000000000; // of a clock that is adjusted meanwhile
		CHECK(wall_before - 1000000000 <= wall && wall <= after);
		before = at;
		if (polled == 3)
			break;
		while ((result = ibv_next_poll(cq)) == ENOENT)
			;
	}
	ibv_end_poll(cq);
	CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	CHECK(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) && !ibv_close_device(context));
	puts("ok");
	return 0;
}
