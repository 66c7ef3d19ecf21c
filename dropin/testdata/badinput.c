// Calls with wrong arguments and objects: each line has the error that rdma-core and the rxe driver return. Prints the
// number of lines, after those whose error differs.
#include "judge.h"
#include "pair.h"

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_mr *mr;
static char memory[8192] __attribute__((aligned(4096)));
static struct ibv_device_attr device;

static void open_all(void)
{
	context = open_first();
	CHECK(!ibv_query_device(context, &device));
	CHECK((pd = ibv_alloc_pd(context)));
	CHECK((cq = ibv_create_cq(context, 64, NULL, NULL, 0)));
	struct ibv_srq_init_attr attr = {NULL, {8, 2, 0}};
	CHECK((srq = ibv_create_srq(pd, &attr)));
	CHECK((mr = ibv_reg_mr(pd, memory, sizeof memory, ALL_ACCESS | IBV_ACCESS_MW_BIND)));
}

static void test_queries(void)
{
	struct ibv_port_attr port;
	union ibv_gid gid;
	struct ibv_gid_entry entry;
	__be16 pkey;
	INT(EINVAL, ibv_query_port(context, 0, &port));
	INT(EINVAL, ibv_query_port(context, 2, &port));
	INT(0, ibv_query_port(context, 1, &port));
	NEG(EINVAL, ibv_query_gid(context, 2, 0, &gid));
	NEG(EINVAL, ibv_query_gid(context, 1, 1000, &gid));
	NEG(EINVAL, ibv_query_gid(context, 1, -1, &gid));
	INT(EINVAL, ibv_query_gid_ex(context, 2, 0, &entry, 0));
	INT(EOPNOTSUPP, ibv_query_gid_ex(context, 1, 0, &entry, 1));
	INT(EINVAL, -ibv_query_gid_table(context, &entry, 0, 0));
	INT(EOPNOTSUPP, -ibv_query_gid_table(context, &entry, 1, 1));
	judge(__LINE__, "ibv_query_pkey", ibv_query_pkey(context, 1, 1, &pkey), -1);
	judge(__LINE__, "ibv_query_pkey", ibv_query_pkey(context, 2, 0, &pkey), -1);
	judge(__LINE__, "ibv_get_pkey_index", ibv_get_pkey_index(context, 1, 0x1234), -1);
	struct ibv_query_device_ex_input input = {1};
	struct ibv_device_attr_ex ex;
	INT(EINVAL, ibv_query_device_ex(context, &input, &ex));
}

static void test_memory(void)
{
	char *nothing = (char *)0x1000;
	static const char constant[4096] __attribute__((aligned(4096))) = {1};
	PTR(EINVAL, ibv_reg_mr(pd, memory, 0, IBV_ACCESS_LOCAL_WRITE));
	PTR(EINVAL, ibv_reg_mr(pd, NULL, 4096, IBV_ACCESS_LOCAL_WRITE));
	PTR(EINVAL, ibv_reg_mr(pd, memory, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE));
	PTR(EFAULT, ibv_reg_mr(pd, nothing, 4096, IBV_ACCESS_LOCAL_WRITE));
	PTR(EFAULT, ibv_reg_mr(pd, (char *)constant, 4096, IBV_ACCESS_LOCAL_WRITE));
	PTR(EINVAL, ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_REMOTE_WRITE));
	PTR(EINVAL, ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_REMOTE_ATOMIC));
	PTR(EINVAL, ibv_reg_mr(pd, memory, 4096, 1 << 15));
	PTR(EOPNOTSUPP, ibv_reg_dmabuf_mr(pd, 0, 4096, 0, 0, 0));
	PTR(EOPNOTSUPP, ibv_alloc_null_mr(pd));

	struct ibv_mr *mine = ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mine);
	uint32_t key = mine->rkey;
	judge(__LINE__, "rereg flags", ibv_rereg_mr(mine, 1 << 10, pd, memory, 4096, 0), IBV_REREG_MR_ERR_INPUT);
	judge(__LINE__, "rereg address", ibv_rereg_mr(mine, IBV_REREG_MR_CHANGE_TRANSLATION, pd, NULL, 4096, 0), IBV_REREG_MR_ERR_INPUT);
	judge(__LINE__, "rereg length", ibv_rereg_mr(mine, IBV_REREG_MR_CHANGE_TRANSLATION, pd, memory, 0, 0), IBV_REREG_MR_ERR_INPUT);
	judge(__LINE__, "rereg access without its flag", ibv_rereg_mr(mine, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 1), IBV_REREG_MR_ERR_INPUT);
	judge(__LINE__, "rereg access", ibv_rereg_mr(mine, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE), IBV_REREG_MR_ERR_CMD);
	judge(__LINE__, "rereg unmapped", ibv_rereg_mr(mine, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, nothing, 4096, 0), IBV_REREG_MR_ERR_CMD);
	INT(0, ibv_rereg_mr(mine, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_ACCESS));
	INT(0, mine->rkey != key);
	INT(0, ibv_dereg_mr(mine));
	INT(EINVAL, ibv_dereg_mr(mine));

	struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey}, other = {(uintptr_t)memory, 64, 1}, beyond = {(uintptr_t)memory, 8193, mr->lkey};
	INT(0, ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
	INT(EOPNOTSUPP, ibv_advise_mr(pd, 100, 0, &sge, 1));
	INT(EINVAL, ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 1 << 5, &sge, 1));
	INT(EINVAL, ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 0));
	INT(ENOENT, ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &other, 1));
	INT(EFAULT, ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &beyond, 1));
}

static void test_windows(void)
{
	PTR(EINVAL, ibv_alloc_mw(pd, 7));
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	CHECK(mw);
	struct ibv_mw_bind bind = {1, 0, {mr, (uintptr_t)memory, 64, IBV_ACCESS_REMOTE_WRITE}};
	INT(EINVAL, ibv_bind_mw(NULL, mw, &bind)); // of type 2
	INT(0, ibv_dealloc_mw(mw));
	INT(EINVAL, ibv_dealloc_mw(mw));
	CHECK((mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1)));
	struct ibv_cq *bind_cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_qp *bind_qp = create_qp(pd, bind_cq, NULL, IBV_QPT_RC, 4);
	CHECK(bind_cq && bind_qp);
	uint32_t rkey = mw->rkey;
	INT(EINVAL, ibv_bind_mw(bind_qp, mw, &bind)); // in state RESET
	bind.bind_info.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
	INT(EINVAL, ibv_bind_mw(bind_qp, mw, &bind));
	bind.bind_info.mr = NULL;
	INT(EINVAL, ibv_bind_mw(bind_qp, mw, &bind)); // a length without memory
	INT(1, rkey == mw->rkey);
	INT(0, ibv_dealloc_mw(mw));
	INT(0, ibv_destroy_qp(bind_qp));
	INT(0, ibv_destroy_cq(bind_cq));
}

static void test_device_memory(void)
{
	struct ibv_alloc_dm_attr attr = {100, 0, 0}, masked = {100, 0, 1}, large = {(size_t)1 << 40, 0, 0}, none = {0, 0, 0};
	PTR(EINVAL, ibv_alloc_dm(context, &masked));
	PTR(EINVAL, ibv_alloc_dm(context, &large));
	PTR(EINVAL, ibv_alloc_dm(context, &none));
	struct ibv_dm *dm = ibv_alloc_dm(context, &attr);
	CHECK(dm);
	INT(EINVAL, ibv_memcpy_to_dm(dm, 1, memory, 4));
	INT(EINVAL, ibv_memcpy_to_dm(dm, 0, memory, 3));
	INT(EFAULT, ibv_memcpy_to_dm(dm, 100, memory, 4));
	INT(EFAULT, ibv_memcpy_from_dm(memory, dm, 0, 104));
	INT(EFAULT, ibv_memcpy_from_dm(memory, dm, UINT64_MAX - 3, 4));
	PTR(EINVAL, ibv_reg_dm_mr(pd, dm, 0, 100, IBV_ACCESS_LOCAL_WRITE)); // not zero-based
	PTR(EINVAL, ibv_reg_dm_mr(pd, dm, 4, 100, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED));
	struct ibv_mr *region = ibv_reg_dm_mr(pd, dm, 0, 100, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED);
	CHECK(region);
	INT(EBUSY, ibv_free_dm(dm));
	judge(__LINE__, "rereg", ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	INT(0, ibv_dereg_mr(region));
	INT(0, ibv_free_dm(dm));
}

static void test_completion_queues(void)
{
	PTR(EINVAL, ibv_create_cq(context, 0, NULL, NULL, 0));
	PTR(EINVAL, ibv_create_cq(context, -1, NULL, NULL, 0));
	PTR(EINVAL, ibv_create_cq(context, device.max_cqe + 1, NULL, NULL, 0));
	PTR(EINVAL, ibv_create_cq(context, 1, NULL, NULL, context->num_comp_vectors));
	PTR(EINVAL, ibv_create_cq(context, 1, NULL, NULL, -1));
	struct ibv_cq_init_attr_ex attr = {.cqe = 16};
	attr.comp_mask = 1u << 31;
	PTR(EOPNOTSUPP, ibv_create_cq_ex(context, &attr));
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	attr.flags = 1u << 31;
	PTR(EOPNOTSUPP, ibv_create_cq_ex(context, &attr));
	attr.flags = 0;
	attr.wc_flags = 1ull << 50;
	PTR(EOPNOTSUPP, ibv_create_cq_ex(context, &attr));
	attr.wc_flags = IBV_WC_EX_WITH_CVLAN;
	PTR(EOPNOTSUPP, ibv_create_cq_ex(context, &attr));
	attr.wc_flags = 0;
	struct ibv_cq_ex *ex = ibv_create_cq_ex(context, &attr);
	CHECK(ex);
	struct ibv_poll_cq_attr poll = {1};
	INT(EINVAL, ibv_start_poll(ex, &poll));
	poll.comp_mask = 0;
	INT(ENOENT, ibv_start_poll(ex, &poll));
	struct ibv_modify_cq_attr modify = {.attr_mask = IBV_CQ_ATTR_MODERATE};
	INT(EOPNOTSUPP, ibv_modify_cq(ibv_cq_ex_to_cq(ex), &modify));
	INT(0, ibv_destroy_cq(ibv_cq_ex_to_cq(ex)));

	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	CHECK(channel);
	struct ibv_cq *mine = ibv_create_cq(context, 4, NULL, channel, 0);
	CHECK(mine);
	INT(EINVAL, ibv_resize_cq(mine, 0));
	INT(EINVAL, ibv_resize_cq(mine, device.max_cqe + 1));
	INT(0, ibv_resize_cq(mine, 8));
	INT(EBUSY, ibv_destroy_comp_channel(channel));
	INT(0, ibv_destroy_cq(mine));
	INT(EINVAL, ibv_destroy_cq(mine));
	struct ibv_wc wc;
	judge(__LINE__, "poll a destroyed queue", ibv_poll_cq(mine, 1, &wc) < 0, 1);
	INT(EINVAL, ibv_req_notify_cq(mine, 0));
	INT(0, ibv_destroy_comp_channel(channel));
	INT(EINVAL, ibv_destroy_comp_channel(channel));
}

static void test_queue_pairs(void)
{
	struct ibv_qp_init_attr_ex good = {.send_cq = cq, .recv_cq = cq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC,
					   .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd}, attr = good;
	attr.qp_type = 100;
	PTR(EOPNOTSUPP, ibv_create_qp_ex(context, &attr));
	attr.qp_type = IBV_QPT_RAW_PACKET;
	PTR(EOPNOTSUPP, ibv_create_qp_ex(context, &attr));
	attr = good;
	attr.send_cq = NULL;
	PTR(EINVAL, ibv_create_qp_ex(context, &attr));
	attr = good;
	attr.recv_cq = NULL;
	PTR(EINVAL, ibv_create_qp_ex(context, &attr));
	attr = good;
	attr.comp_mask |= 1 << 30;
	PTR(EOPNOTSUPP, ibv_create_qp_ex(context, &attr));
	attr = good;
	attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = IBV_QP_CREATE_SCATTER_FCS;
	PTR(EOPNOTSUPP, ibv_create_qp_ex(context, &attr));
	attr = good;
	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_TSO;
	PTR(EOPNOTSUPP, ibv_create_qp_ex(context, &attr));
	attr = good;
	attr.cap.max_send_wr = device.max_qp_wr + 1;
	PTR(EINVAL, ibv_create_qp_ex(context, &attr));
	attr = good;
	attr.cap.max_recv_wr = device.max_qp_wr + 1;
	PTR(EINVAL, ibv_create_qp_ex(context, &attr));
	attr = good;
	attr.cap.max_send_sge = device.max_sge + 1;
	PTR(EINVAL, ibv_create_qp_ex(context, &attr));
	attr = good;
	attr.cap.max_recv_sge = device.max_sge + 1;
	PTR(EINVAL, ibv_create_qp_ex(context, &attr));
	attr = good;
	attr.cap.max_inline_data = 1 << 24;
	PTR(EINVAL, ibv_create_qp_ex(context, &attr));

	struct ibv_qp *qp = create_qp(pd, cq, NULL, IBV_QPT_RC, 4);
	CHECK(qp);
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS};
	INT(EINVAL, ibv_modify_qp(qp, &a, IBV_QP_STATE)); // from RESET
	a.qp_state = 77;
	INT(EINVAL, ibv_modify_qp(qp, &a, IBV_QP_STATE));
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 2};
	INT(EINVAL, ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	a.port_num = 1;
	INT(EINVAL, ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)); // no P_Key index
	a.pkey_index = 1;
	INT(EINVAL, ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	INT(0, to_init(qp));
	INT(EINVAL, to_rts(qp));
	INT(0, to_rtr(qp, qp->qp_num));
	INT(0, to_rts(qp));
	struct ibv_qp_rate_limit_attr rate = {0};
	INT(EOPNOTSUPP, ibv_modify_qp_rate_limit(qp, &rate));
	struct ibv_ece ece = {.vendor_id = 1};
	INT(EOPNOTSUPP, ibv_set_ece(qp, &ece));
	union ibv_gid gid = {.raw = {0xff, 0x0e}};
	INT(EINVAL, ibv_attach_mcast(qp, &gid, 0)); // not UD
	INT(EBUSY, ibv_destroy_cq(cq));
	INT(0, ibv_destroy_qp(qp));
	INT(EINVAL, ibv_destroy_qp(qp));
	INT(EINVAL, to_init(qp));
	INT(EINVAL, post_recv(qp, mr, 8, 1));
	INT(EINVAL, post_send(qp, mr, 8, 1));
	PTR(EOPNOTSUPP, ibv_open_xrcd(context, &(struct ibv_xrcd_init_attr){0}));
	PTR(EOPNOTSUPP, ibv_open_qp(context, &(struct ibv_qp_open_attr){0}));
}

static void test_posting(void)
{
	struct ibv_qp *qp = create_qp(pd, cq, NULL, IBV_QPT_RC, 4), *peer = create_qp(pd, cq, NULL, IBV_QPT_RC, 4);
	struct ibv_qp *shared = create_qp(pd, cq, srq, IBV_QPT_RC, 4), *ud = create_qp(pd, cq, NULL, IBV_QPT_UD, 4);
	CHECK(qp && peer && shared && ud);
	struct ibv_sge sges[4] = {{(uintptr_t)memory, 8, mr->lkey}, {(uintptr_t)memory, 8, mr->lkey},
				  {(uintptr_t)memory, 8, mr->lkey}, {(uintptr_t)memory, 65, mr->lkey}};
	struct ibv_send_wr wrs[3], *bad;
	memset(wrs, 0, sizeof wrs);
	for (int i = 0; i < 3; i++)
		wrs[i] = (struct ibv_send_wr){.wr_id = i, .next = i < 2 ? &wrs[i + 1] : NULL, .sg_list = sges, .num_sge = 1,
					      .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_recv_wr recvs[6], *bad_recv;
	for (int i = 0; i < 6; i++)
		recvs[i] = (struct ibv_recv_wr){i, i < 5 ? &recvs[i + 1] : NULL, sges, 1};

	bad_recv = NULL;
	INT(EINVAL, ibv_post_recv(qp, recvs, &bad_recv)); // in RESET
	INT(0, bad_recv != &recvs[0]);
	INT(EINVAL, ibv_post_recv(shared, recvs, &bad_recv)); // with a shared queue
	for (int step = 0; step < 3; step++) { // in RESET, INIT and RTR
		bad = NULL;
		INT(EINVAL, ibv_post_send(qp, wrs, &bad));
		INT(0, bad != &wrs[0]);
		if (step == 0)
			INT(0, to_init(qp));
		if (step == 1)
			INT(0, to_rtr(qp, peer->qp_num));
	}
	INT(0, to_rts(qp));
	wrs[1].num_sge = 3;
	INT(EINVAL, ibv_post_send(qp, wrs, &bad));
	INT(0, bad != &wrs[1]); // wrs[0] is posted
	wrs[1].num_sge = 1;
	wrs[0].num_sge = -1;
	INT(EINVAL, ibv_post_send(qp, wrs, &bad));
	wrs[0].num_sge = 1;
	wrs[0].sg_list = NULL;
	INT(EINVAL, ibv_post_send(qp, wrs, &bad));
	wrs[0].sg_list = &sges[3];
	wrs[0].send_flags = IBV_SEND_INLINE;
	INT(EINVAL, ibv_post_send(qp, wrs, &bad)); // more than max_inline_data
	wrs[0].num_sge = -1;
	INT(EINVAL, ibv_post_send(qp, wrs, &bad));
	wrs[0].num_sge = 3;
	wrs[0].sg_list = &sges[1];
	INT(EINVAL, ibv_post_send(qp, wrs, &bad));
	struct ibv_sge huge[2] = {{(uintptr_t)memory, 8, 0}, {(uintptr_t)memory, 0x7fffffff, 0}};
	wrs[0].num_sge = 2;
	wrs[0].sg_list = huge;
	INT(EINVAL, ibv_post_send(qp, wrs, &bad));
	wrs[0].num_sge = 1;
	wrs[0].send_flags = IBV_SEND_SIGNALED;
	wrs[0].sg_list = sges;
	wrs[0].opcode = 200;
	INT(EINVAL, ibv_post_send(qp, wrs, &bad));
	INT(0, bad != &wrs[0]);
	wrs[0].opcode = IBV_WR_TSO;
	INT(EINVAL, ibv_post_send(qp, wrs, &bad));
	wrs[0].opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	sges[0].length = 4;
	INT(EINVAL, ibv_post_send(qp, wrs, &bad)); // an atomic operation on 4 bytes
	sges[0].length = 8;
	wrs[0].opcode = IBV_WR_SEND;

	for (int i = 0; i < 6; i++)
		recvs[i].next = i < 5 ? &recvs[i + 1] : NULL;
	INT(ENOMEM, ibv_post_recv(qp, recvs, &bad_recv)); // a queue of 4
	INT(0, bad_recv != &recvs[4]);
	INT(0, to_init(peer));
	recvs[0].next = NULL;
	recvs[0].num_sge = 3;
	INT(EINVAL, ibv_post_recv(peer, recvs, &bad_recv));
	INT(0, bad_recv != &recvs[0]);
	recvs[0].num_sge = 1;
	recvs[0].sg_list = NULL;
	INT(EINVAL, ibv_post_recv(peer, recvs, &bad_recv));
	recvs[0].sg_list = sges;
	recvs[0].num_sge = 3;
	INT(EINVAL, ibv_post_srq_recv(srq, recvs, &bad_recv));
	recvs[0].num_sge = -1;
	INT(EINVAL, ibv_post_srq_recv(srq, recvs, &bad_recv));
	recvs[0].num_sge = 1;

	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1};
	INT(0, ibv_modify_qp(ud, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	a.qp_state = IBV_QPS_RTR;
	INT(0, ibv_modify_qp(ud, &a, IBV_QP_STATE));
	a.qp_state = IBV_QPS_RTS;
	INT(0, ibv_modify_qp(ud, &a, IBV_QP_STATE | IBV_QP_SQ_PSN));
	wrs[0].next = NULL;
	INT(EINVAL, ibv_post_send(ud, wrs, &bad)); // no address handle
	wrs[0].opcode = IBV_WR_RDMA_WRITE;
	INT(EINVAL, ibv_post_send(ud, wrs, &bad));
	wrs[0].opcode = IBV_WR_SEND;
	INT(ENOMEM, (ibv_post_send(qp, wrs, &bad), ibv_post_send(qp, wrs, &bad), ibv_post_send(qp, wrs, &bad), ibv_post_send(qp, wrs, &bad)));
	INT(0, ibv_destroy_qp(qp));
	INT(0, ibv_destroy_qp(peer));
	INT(0, ibv_destroy_qp(ud));
	INT(EBUSY, ibv_destroy_srq(srq));
	INT(0, ibv_destroy_qp(shared));
}

static void test_shared_receive_queues(void)
{
	struct ibv_srq_init_attr large = {NULL, {device.max_srq_wr + 1, 1, 0}}, wide = {NULL, {8, device.max_srq_sge + 1, 0}};
	PTR(EINVAL, ibv_create_srq(pd, &large));
	PTR(EINVAL, ibv_create_srq(pd, &wide));
	struct ibv_srq_init_attr_ex ex = {.attr = {8, 1, 0}, .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
					  .srq_type = IBV_SRQT_XRC, .pd = pd};
	PTR(EOPNOTSUPP, ibv_create_srq_ex(context, &ex));
	struct ibv_srq_attr a = {8, 2, 100};
	INT(EINVAL, ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT));
	a.max_wr = device.max_srq_wr + 1;
	INT(EINVAL, ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR));
	uint32_t number;
	INT(EOPNOTSUPP, ibv_get_srq_num(srq, &number));
}

static void test_addresses(void)
{
	struct ibv_ah_attr good = {.is_global = 1, .port_num = 1}, attr;
	CHECK(!ibv_query_gid(context, 1, 0, &good.grh.dgid));
	attr = good;
	attr.is_global = 0;
	PTR(EINVAL, ibv_create_ah(pd, &attr));
	attr = good;
	attr.port_num = 2;
	PTR(EINVAL, ibv_create_ah(pd, &attr));
	attr = good;
	attr.grh.sgid_index = 9;
	PTR(EINVAL, ibv_create_ah(pd, &attr));
	struct ibv_ah *ah = ibv_create_ah(pd, &good);
	CHECK(ah);
	INT(EBUSY, ibv_dealloc_pd(pd));
	INT(0, ibv_destroy_ah(ah));
	INT(EINVAL, ibv_destroy_ah(ah));
}

static void test_domains(void)
{
	struct ibv_td *td = ibv_alloc_td(context, &(struct ibv_td_init_attr){0});
	CHECK(td);
	PTR(EINVAL, ibv_alloc_td(context, &(struct ibv_td_init_attr){1}));
	PTR(EINVAL, ibv_alloc_parent_domain(context, &(struct ibv_parent_domain_init_attr){.td = td}));
	PTR(EINVAL, ibv_alloc_parent_domain(context, &(struct ibv_parent_domain_init_attr){.pd = pd, .comp_mask = 1u << 20}));
	struct ibv_pd *parent = ibv_alloc_parent_domain(context, &(struct ibv_parent_domain_init_attr){.pd = pd, .td = td});
	CHECK(parent);
	INT(EBUSY, ibv_dealloc_td(td));
	INT(EBUSY, ibv_dealloc_pd(pd));
	INT(0, ibv_dealloc_pd(parent));
	INT(EINVAL, ibv_dealloc_pd(parent));
	INT(0, ibv_dealloc_td(td));
	PTR(EINVAL, ibv_import_pd(context, 0));
	PTR(EBADF, ibv_import_device(-1));
	PTR(EOPNOTSUPP, ibv_import_device(0)); // no context
	struct ibv_wq_init_attr wq = {.wq_type = IBV_WQT_RQ};
	PTR(EOPNOTSUPP, ibv_create_wq(context, &wq));
	struct ibv_counters_init_attr counters = {0};
	PTR(EOPNOTSUPP, ibv_create_counters(context, &counters));
}

int main(void)
{
	open_all();
	test_queries();
	test_memory();
	test_windows();
	test_device_memory();
	test_completion_queues();
	test_queue_pairs();
	test_posting();
	test_shared_receive_queues();
	test_addresses();
	test_domains();
	INT(EBUSY, ibv_dealloc_pd(pd));
	INT(0, ibv_dereg_mr(mr));
	INT(0, ibv_destroy_srq(srq));
	INT(EINVAL, ibv_destroy_srq(srq));
	INT(0, ibv_destroy_cq(cq));
	INT(0, ibv_dealloc_pd(pd));
	INT(EINVAL, ibv_dealloc_pd(pd));
	INT(0, ibv_close_device(context));
	printf("%d lines, %d wrong\n", lines, wrong);
	return wrong > 0;
}
