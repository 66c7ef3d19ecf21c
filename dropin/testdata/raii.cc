// A C++ program with objects that release what they own: two queue pairs exchange messages by a reliable connection.
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

// A Handle owns an object of libibverbs; Close is the function that releases it.
template <typename T, int (*Close)(T *)> class Handle {
	struct Closer {
		void operator()(T *object) const { Close(object); }
	};
	std::unique_ptr<T, Closer> object;

public:
	Handle(T *from, const char *call) : object(from)
	{
		if (!from)
			throw std::system_error(errno, std::generic_category(), call);
	}
	T *get() const { return object.get(); }
	T *operator->() const { return object.get(); }
};

static void check(int error, const char *call)
{
	if (error)
		throw std::system_error(error, std::generic_category(), call);
}

static ibv_context *open_first()
{
	int count = 0;
	ibv_device **list = ibv_get_device_list(&count);
	ibv_context *context = count ? ibv_open_device(list[0]) : nullptr;
	ibv_free_device_list(list);
	return context;
}

class Memory {
	std::vector<uint8_t> bytes;
	Handle<ibv_mr, ibv_dereg_mr> region;

public:
	Memory(ibv_pd *pd, size_t size)
		: bytes(size), region(ibv_reg_mr(pd, bytes.data(), size, IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr")
	{
	}
	std::vector<uint8_t> &data() { return bytes; }
	ibv_sge sge() const { return {reinterpret_cast<uint64_t>(bytes.data()), static_cast<uint32_t>(bytes.size()), region->lkey}; }
};

class Endpoint {
	Handle<ibv_cq, ibv_destroy_cq> cq;
	Handle<ibv_qp, ibv_destroy_qp> qp;

	static ibv_qp *create(ibv_pd *pd, ibv_cq *cq)
	{
		ibv_qp_init_attr attr{};
		attr.send_cq = attr.recv_cq = cq;
		attr.cap = {8, 8, 1, 1, 0};
		attr.qp_type = IBV_QPT_RC;
		return ibv_create_qp(pd, &attr);
	}

public:
	explicit Endpoint(ibv_pd *pd)
		: cq(ibv_create_cq(pd->context, 16, nullptr, nullptr, 0), "ibv_create_cq"), qp(create(pd, cq.get()), "ibv_create_qp")
	{
	}
	uint32_t number() const { return qp->qp_num; }

	void connect(const union ibv_gid &peer, uint32_t peer_number)
	{
		ibv_qp_attr attr{};
		attr.qp_state = IBV_QPS_INIT;
		attr.port_num = 1;
		check(ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
		attr = {};
		attr.qp_state = IBV_QPS_RTR;
		attr.path_mtu = IBV_MTU_1024;
		attr.dest_qp_num = peer_number;
		attr.ah_attr.is_global = 1;
		attr.ah_attr.port_num = 1;
		attr.ah_attr.grh.dgid = peer;
		attr.ah_attr.grh.hop_limit = 64;
		check(ibv_modify_qp(qp.get(), &attr,
				    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "RTR");
		attr = {};
		attr.qp_state = IBV_QPS_RTS;
		attr.timeout = 14;
		attr.retry_cnt = attr.rnr_retry = 7;
		check(ibv_modify_qp(qp.get(), &attr,
				    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					    IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
	}

	void send(const Memory &from)
	{
		ibv_sge sge = from.sge();
		ibv_send_wr wr{}, *bad;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		wr.opcode = IBV_WR_SEND;
		wr.send_flags = IBV_SEND_SIGNALED;
		check(ibv_post_send(qp.get(), &wr, &bad), "ibv_post_send");
	}

	void receive(const Memory &to)
	{
		ibv_sge sge = to.sge();
		ibv_recv_wr wr{}, *bad;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		check(ibv_post_recv(qp.get(), &wr, &bad), "ibv_post_recv");
	}

	ibv_wc poll()
	{
		ibv_wc wc;
		int n;
		while ((n = ibv_poll_cq(cq.get(), 1, &wc)) == 0)
			;
		if (n < 0 || wc.status != IBV_WC_SUCCESS)
			throw std::runtime_error(n < 0 ? "ibv_poll_cq" : ibv_wc_status_str(wc.status));
		return wc;
	}
};

int main()
try {
	Handle<ibv_context, ibv_close_device> context(open_first(), "ibv_open_device");
	Handle<ibv_pd, ibv_dealloc_pd> pd(ibv_alloc_pd(context.get()), "ibv_alloc_pd");
	ibv_gid gid;
	check(ibv_query_gid(context.get(), 1, 0, &gid), "ibv_query_gid");
	Endpoint a(pd.get()), b(pd.get());
	a.connect(gid, b.number());
	b.connect(gid, a.number());
	Memory from(pd.get(), 10000), to(pd.get(), 10000);
	std::iota(from.data().begin(), from.data().end(), 0);
	b.receive(to);
	a.send(from);
	a.poll();
	if (b.poll().byte_len != 10000 || from.data() != to.data())
		throw std::runtime_error("other data");
	try { // errors are exceptions with the errno
		Handle<ibv_cq, ibv_destroy_cq> none(ibv_create_cq(context.get(), -1, nullptr, nullptr, 0), "ibv_create_cq");
		return 1;
	} catch (const std::system_error &e) {
		std::cout << e.code().value() << '\n';
	}
	return 0;
} catch (const std::exception &e) {
	std::cerr << e.what() << '\n';
	return 1;
}
