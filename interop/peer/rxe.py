"""Verbs on a Linux adapter for a caller on the network: one connection is one
end, which has a memory, a completion queue, and queue pairs. A request and its
reply are a line of JSON each."""

import base64
import ctypes
import json
import os
import select
import signal
import socket
import sys
import time
import zlib

from pyverbs import enums as e
from pyverbs.addr import AH, GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ, CompChannel
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

BLOCK = 4099  # bytes after which the pattern repeats; a prime


def pattern(seed, n):
    block = bytes((i * i * 7 + i * seed + (i >> 8) + seed) & 0xFF for i in range(BLOCK))
    return (block * (n // BLOCK + 1))[:n]


def event_fds():
    """The open descriptors that deliver events."""
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            if "infinibandevent" in os.readlink("/proc/self/fd/" + fd):
                found.add(int(fd))
        except FileNotFoundError:
            pass  # that of the listing itself
    return found


class End:
    def __init__(self):
        self.connected = {}  # by queue pair: address handle, number and Q_Key

    def open(self, r):
        self.ctx = Context(name=r["dev"])
        (self.async_fd,) = event_fds()
        self.gid_index = r["gid_index"]
        self.gid = self.ctx.query_gid(1, self.gid_index).gid
        self.pd = PD(self.ctx)
        self.mr = MR(self.pd, r["memory"], r["access"])
        self.channel = CompChannel(self.ctx)
        (self.channel_fd,) = event_fds() - {self.async_fd}
        self.cq = CQ(self.ctx, r["cq_depth"], channel=self.channel)
        self.srq = None
        if r["srq"]:
            self.srq = SRQ(self.pd, SrqInitAttr(SrqAttr(max_wr=r["recv_depth"], max_sge=1)))
        self.type = r["type"]
        self.access = r["qp_access"]
        self.qps = []
        for _ in range(r["qps"]):
            cap = QPCap(max_send_wr=r["send_depth"], max_recv_wr=r["recv_depth"], max_send_sge=1, max_recv_sge=1)
            init = QPInitAttr(qp_type=self.type, scq=self.cq, rcq=self.cq, srq=self.srq, cap=cap)
            qp = QP(self.pd, init, None)
            attr = QPAttr(port_num=1)
            attr.qp_access_flags = self.access
            attr.qkey = r["qkey"]
            qp.to_init(attr)
            self.qps.append(qp)
        return {"gid": self.gid, "qpns": [q.qp_num for q in self.qps], "addr": self.mr.buf,
                "lkey": self.mr.lkey, "rkey": self.mr.rkey}

    def connect(self, r):
        grh = GlobalRoute(dgid=GID(r["gid"]), sgid_index=self.gid_index, hop_limit=64)
        av = AHAttr(gr=grh, is_global=1, port_num=1)
        qp = self.qps[r["qp"]]
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = self.access
        attr.qkey = r["qkey"]
        attr.path_mtu = r["mtu"]
        attr.rq_psn = r["rq_psn"]
        attr.sq_psn = r["sq_psn"]
        attr.dest_qp_num = r["qpn"]
        attr.ah_attr = av
        attr.timeout = r["timeout"]
        attr.retry_cnt = r["retry_cnt"]
        attr.rnr_retry = r["rnr_retry"]
        attr.min_rnr_timer = r["min_rnr_timer"]
        attr.max_rd_atomic = r["max_rd_atomic"]
        attr.max_dest_rd_atomic = r["max_dest_rd_atomic"]
        qp.to_rts(attr)  # from INIT
        if self.type == e.IBV_QPT_UD:
            self.connected[r["qp"]] = (AH(self.pd, attr=av), r["qpn"], r["qkey"])

    def sges(self, r):
        return [SGE(*s) for s in r.get("sges") or []]

    def recv(self, r):
        sges = self.sges(r)
        wr = RecvWR(wr_id=r["id"], num_sge=len(sges), sg=sges or None)
        (self.srq if self.srq else self.qps[r["qp"]]).post_recv(wr)

    def send(self, r):
        sges = self.sges(r)
        # immediate data is kept as on the wire, a key as in the host; both in one place
        imm = r["inv"] if r["opcode"] == e.IBV_WR_SEND_WITH_INV else socket.htonl(r["imm"])
        wr = SendWR(wr_id=r["id"], opcode=r["opcode"], num_sge=len(sges), sg=sges or None,
                    send_flags=r["flags"], imm_data=imm)
        if r["opcode"] in (e.IBV_WR_RDMA_WRITE, e.IBV_WR_RDMA_WRITE_WITH_IMM, e.IBV_WR_RDMA_READ):
            wr.set_wr_rdma(r["rkey"], r["remote"])
        elif r["opcode"] in (e.IBV_WR_ATOMIC_CMP_AND_SWP, e.IBV_WR_ATOMIC_FETCH_AND_ADD):
            wr.set_wr_atomic(r["rkey"], r["remote"], r.get("compare_add", 0), r.get("swap", 0))
        if r["qp"] in self.connected:
            wr.set_wr_ud(*self.connected[r["qp"]])
        self.qps[r["qp"]].post_send(wr)

    def poll(self, r):
        """As many completions as asked for, or those that come in time."""
        end = time.monotonic() + r["seconds"]
        got = []
        while len(got) < r["n"]:
            n, wcs = self.cq.poll(min(r["n"] - len(got), 16))
            for wc in wcs[:n]:
                got.append({"id": wc.wr_id, "status": wc.status, "opcode": wc.opcode, "bytes": wc.byte_len,
                            "flags": wc.wc_flags, "imm": socket.ntohl(wc.imm_data), "qpn": wc.qp_num, "src": wc.src_qp})
            if n == 0:
                if time.monotonic() > end:
                    break
                time.sleep(0.0005)
        return got

    def arm(self, r):
        self.cq.req_notify(r["solicited"])

    def event(self, r):
        """Whether the armed queue told in time."""
        if not select.select([self.channel_fd], [], [], r["seconds"])[0]:
            return False
        self.channel.get_cq_event(self.cq)
        self.cq.ack_events(1)
        return True

    def limit(self, r):
        self.srq.modify(SrqAttr(max_wr=0, max_sge=0, srq_limit=r["limit"]), e.IBV_SRQ_LIMIT)

    def async_event(self, r):
        """The kind of the next asynchronous event, or -1 if none comes in time."""
        if not select.select([self.async_fd], [], [], r["seconds"])[0]:
            return -1
        event = self.ctx.get_async_event()
        event.ack()
        return event.event_type

    def fail(self, r):
        self.qps[r["qp"]].modify(QPAttr(qp_state=e.IBV_QPS_ERR), e.IBV_QP_STATE)

    def state(self, r):
        return self.qps[r["qp"]].query(e.IBV_QP_STATE)[0].qp_state

    def view(self, r):
        return (ctypes.c_char * r["n"]).from_address(self.mr.buf + r["off"])

    def fill(self, r):
        self.view(r).raw = pattern(r["seed"], r["n"])

    def sum(self, r):
        return zlib.crc32(self.view(r))

    def get(self, r):
        return base64.b64encode(self.view(r).raw).decode()

    def put(self, r):
        data = base64.b64decode(r["data"])
        ctypes.memmove(self.mr.buf + r["off"], data, len(data))

    def each(self, r):
        return [self.do(one) for one in r["requests"]]

    def do(self, r):
        return getattr(self, r["do"])(r)


def serve(conn):
    end = End()
    with conn, conn.makefile("r") as lines:
        for line in lines:
            try:
                reply = {"ok": end.do(json.loads(line))}
            except Exception as err:
                reply = {"error": "%s: %s" % (type(err).__name__, err)}
            conn.sendall(json.dumps(reply).encode() + b"\n")


def main(addr, port):
    listener = socket.create_server((addr, int(port)))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("listening", flush=True)
    while True:
        conn, _ = listener.accept()
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if os.fork() == 0:
            listener.close()
            serve(conn)
            os._exit(0)  # which closes everything
        conn.close()


main(*sys.argv[1:])
