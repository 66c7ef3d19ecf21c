/* A small program of libibverbs to test: the parent writes blocks into the memory of its child by RDMA, with immediate
 * data, and the child checks every byte. The two exchange the data of their queue pairs by a socket pair. Usage: pair
 * [BLOCKS]. Exit status 0: all blocks arrived as they were sent. */
#include <infiniband/verbs.h>

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { block = 64 << 10, first_psn = 100, gid_index = 0 };

struct endpoint { /* sent to the peer */
	union ibv_gid gid;
	uint64_t address;
	uint32_t rkey, qpn;
};

static struct ibv_context *context;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static unsigned char *memory;

static void check(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void open_device(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	check(list && n > 0, "no RDMA device");
	context = ibv_open_device(list[0]);
	check(context != NULL, "ibv_open_device");
	ibv_free_device_list(list);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	check(pd != NULL, "ibv_alloc_pd");
	memory = malloc(block);
	check(memory != NULL, "malloc");
	mr = ibv_reg_mr(pd, memory, block, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	check(mr != NULL, "ibv_reg_mr");
	cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	check(cq != NULL, "ibv_create_cq");
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	qp = ibv_create_qp(pd, &init);
	check(qp != NULL, "ibv_create_qp");
}

static void connect_pair(int peer, struct endpoint *remote)
{
	struct endpoint local = { .address = (uintptr_t)memory, .rkey = mr->rkey, .qpn = qp->qp_num };
	check(ibv_query_gid(context, 1, gid_index, &local.gid) == 0, "ibv_query_gid");
	check(write(peer, &local, sizeof local) == sizeof local, "write");
	check(read(peer, remote, sizeof *remote) == sizeof *remote, "read");
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = remote->qpn, .rq_psn = first_psn,
		.max_dest_rd_atomic = 1, .min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = remote->gid, .sgid_index = gid_index, .hop_limit = 64 } },
	};
	check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0, "RTR");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .sq_psn = first_psn, .timeout = 12, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1,
	};
	check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					       IBV_QP_MAX_QP_RD_ATOMIC) == 0, "RTS");
}

/* complete waits for one completion and returns its immediate data. */
static uint32_t complete(void)
{
	struct ibv_wc wc;
	int n;
	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		;
	check(n > 0, "ibv_poll_cq");
	if (wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "work request %d: %s\n", (int)wc.wr_id, ibv_wc_status_str(wc.status));
		exit(1);
	}
	return ntohl(wc.imm_data);
}

static unsigned char pattern(uint32_t number, size_t i) { return number * 31 + i * 7 + i / 256; }

static void send_blocks(uint32_t blocks, int peer, struct endpoint *remote)
{
	for (uint32_t number = 0; number < blocks; number++) {
		for (size_t i = 0; i < block; i++)
			memory[i] = pattern(number, i);
		char ready; /* the receive is posted, and the memory of the peer is free */
		check(read(peer, &ready, 1) == 1, "read");
		struct ibv_sge sge = { .addr = (uintptr_t)memory, .length = block, .lkey = mr->lkey };
		struct ibv_send_wr *bad, wr = {
			.wr_id = number, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
			.send_flags = IBV_SEND_SIGNALED, .imm_data = htonl(number),
			.wr.rdma = { .remote_addr = remote->address, .rkey = remote->rkey },
		};
		check(ibv_post_send(qp, &wr, &bad) == 0, "ibv_post_send");
		complete();
	}
}

static void receive_blocks(uint32_t blocks, int peer)
{
	for (uint32_t number = 0; number < blocks; number++) {
		struct ibv_recv_wr *bad, wr = { .wr_id = number };
		check(ibv_post_recv(qp, &wr, &bad) == 0, "ibv_post_recv");
		check(write(peer, "", 1) == 1, "write");
		check(complete() == number, "immediate data");
		for (size_t i = 0; i < block; i++)
			check(memory[i] == pattern(number, i), "data");
	}
}

int main(int argc, char **argv)
{
	uint32_t blocks = argc > 1 ? atoi(argv[1]) : 100;
	int pair[2];
	check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
	pid_t child = fork();
	check(child >= 0, "fork");
	int peer = pair[child == 0];
	close(pair[child != 0]);
	struct endpoint remote;
	open_device();
	connect_pair(peer, &remote);
	if (child == 0) {
		receive_blocks(blocks, peer);
		char done; /* a lost acknowledgement is sent again, but not by a process that has ended */
		check(read(peer, &done, 1) == 1, "read");
		return 0;
	}
	send_blocks(blocks, peer, &remote);
	check(write(peer, "", 1) == 1, "write");
	int status;
	check(waitpid(child, &status, 0) == child && status == 0, "child");
	printf("%u blocks of %d bytes\n", blocks, block);
	return 0;
}
