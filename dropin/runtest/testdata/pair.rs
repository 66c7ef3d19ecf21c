// RDMA in Rust without a crate: two processes connect reliable queue pairs. The client writes a block into the server's
// memory, and messages go back and forth, checked by both. Usage: pair ROUNDS, or, as the program starts itself, with
// standard input and output as the way to the peer.
//
// The structures are those of <infiniband/verbs.h>, up to the last member used.
#![allow(dead_code)] // members that others read
use std::ffi::c_void;
use std::io::{Read, Write};
use std::os::raw::{c_char, c_int};
use std::process::{Command, Stdio};
use std::{env, mem, ptr};

const BLOCK: usize = 1 << 20;
const LOCAL_WRITE: c_int = 1;
const REMOTE_WRITE: c_int = 2;

#[repr(C)]
struct Device([u8; 0]);
#[repr(C)]
struct Pd {
    context: *mut Context,
    handle: u32,
}
#[repr(C)]
struct Cq {
    context: *mut Context, // the channel and more follow
}
#[repr(C)]
struct Mr {
    context: *mut Context,
    pd: *mut Pd,
    addr: *mut c_void,
    length: usize,
    handle: u32,
    lkey: u32,
    rkey: u32,
}
#[repr(C)]
struct Qp {
    context: *mut Context,
    qp_context: *mut c_void,
    pd: *mut Pd,
    send_cq: *mut Cq,
    recv_cq: *mut Cq,
    srq: *mut c_void,
    handle: u32,
    qp_num: u32,
    state: c_int,
    qp_type: c_int, // a mutex and more follow
}
// The functions that libibverbs calls through the context: poll_cq is the 12th pointer of ibv_context_ops.
#[repr(C)]
struct Context {
    device: *mut Device,
    before_poll: [*mut c_void; 11],
    poll_cq: unsafe extern "C" fn(*mut Cq, c_int, *mut Completion) -> c_int,
    after_poll: [*mut c_void; 13],
    post_send: unsafe extern "C" fn(*mut Qp, *mut SendRequest, *mut *mut SendRequest) -> c_int,
    post_recv: unsafe extern "C" fn(*mut Qp, *mut RecvRequest, *mut *mut RecvRequest) -> c_int,
}
#[repr(C)]
struct Sge {
    addr: u64,
    length: u32,
    lkey: u32,
}
#[repr(C)]
struct SendRequest {
    wr_id: u64,
    next: *mut SendRequest,
    sg_list: *mut Sge,
    num_sge: c_int,
    opcode: c_int,
    send_flags: u32,
    imm_data: u32,
    remote_addr: u64,
    rkey: u32,
    rest: [u64; 9],
}
#[repr(C)]
struct RecvRequest {
    wr_id: u64,
    next: *mut RecvRequest,
    sg_list: *mut Sge,
    num_sge: c_int,
}
#[repr(C)]
struct Completion {
    wr_id: u64,
    status: c_int,
    opcode: c_int,
    vendor_err: u32,
    byte_len: u32,
    rest: [u32; 6],
}
#[repr(C)]
struct Capabilities {
    max_send_wr: u32,
    max_recv_wr: u32,
    max_send_sge: u32,
    max_recv_sge: u32,
    max_inline_data: u32,
}
#[repr(C)]
struct QpInit {
    qp_context: *mut c_void,
    send_cq: *mut Cq,
    recv_cq: *mut Cq,
    srq: *mut c_void,
    cap: Capabilities,
    qp_type: c_int,
    sq_sig_all: c_int,
}
#[repr(C)]
struct AddressVector {
    dgid: [u64; 2],
    flow_label: u32,
    sgid_index: u8,
    hop_limit: u8,
    traffic_class: u8,
    dlid: u16,
    sl: u8,
    src_path_bits: u8,
    static_rate: u8,
    is_global: u8,
    port_num: u8,
}
#[repr(C)]
struct QpAttr {
    qp_state: c_int,
    cur_qp_state: c_int,
    path_mtu: c_int,
    path_mig_state: c_int,
    qkey: u32,
    rq_psn: u32,
    sq_psn: u32,
    dest_qp_num: u32,
    qp_access_flags: u32,
    cap: Capabilities,
    ah_attr: AddressVector,
    alt_ah_attr: AddressVector,
    pkey_index: u16,
    alt_pkey_index: u16,
    en_sqd_async_notify: u8,
    sq_draining: u8,
    max_rd_atomic: u8,
    max_dest_rd_atomic: u8,
    min_rnr_timer: u8,
    port_num: u8,
    timeout: u8,
    retry_cnt: u8,
    rnr_retry: u8,
    alt_port_num: u8,
    alt_timeout: u8,
    rate_limit: u32,
}

#[link(name = "ibverbs")]
extern "C" {
    fn ibv_get_device_list(count: *mut c_int) -> *mut *mut Device;
    fn ibv_free_device_list(list: *mut *mut Device);
    fn ibv_get_device_name(device: *mut Device) -> *const c_char;
    fn ibv_open_device(device: *mut Device) -> *mut Context;
    fn ibv_close_device(context: *mut Context) -> c_int;
    fn ibv_query_gid(context: *mut Context, port: u8, index: c_int, gid: *mut [u64; 2]) -> c_int;
    fn ibv_alloc_pd(context: *mut Context) -> *mut Pd;
    fn ibv_dealloc_pd(pd: *mut Pd) -> c_int;
    fn ibv_reg_mr(pd: *mut Pd, addr: *mut c_void, length: usize, access: c_int) -> *mut Mr;
    fn ibv_dereg_mr(mr: *mut Mr) -> c_int;
    fn ibv_create_cq(context: *mut Context, cqe: c_int, user: *mut c_void, channel: *mut c_void, vector: c_int) -> *mut Cq;
    fn ibv_destroy_cq(cq: *mut Cq) -> c_int;
    fn ibv_create_qp(pd: *mut Pd, init: *mut QpInit) -> *mut Qp;
    fn ibv_modify_qp(qp: *mut Qp, attr: *mut QpAttr, mask: c_int) -> c_int;
    fn ibv_destroy_qp(qp: *mut Qp) -> c_int;
}

// An endpoint is a connected queue pair with a registered block of memory. Dropping it destroys all.
struct Endpoint {
    context: *mut Context,
    pd: *mut Pd,
    cq: *mut Cq,
    qp: *mut Qp,
    mr: *mut Mr,
    memory: Vec<u8>,
    done: [usize; 3], // completions not yet waited for, by ID
}

impl Endpoint {
    fn open() -> Endpoint {
        unsafe {
            let mut count = 0;
            let list = ibv_get_device_list(&mut count);
            assert!(!list.is_null() && count > 0, "no RDMA device");
            assert_eq!(std::ffi::CStr::from_ptr(ibv_get_device_name(*list)).to_str().unwrap(), "softrnic0");
            let context = ibv_open_device(*list);
            ibv_free_device_list(list);
            assert!(!context.is_null());
            let pd = ibv_alloc_pd(context);
            let cq = ibv_create_cq(context, 64, ptr::null_mut(), ptr::null_mut(), 0);
            let mut memory = vec![0u8; BLOCK];
            assert!(!pd.is_null() && !cq.is_null());
            let mr = ibv_reg_mr(pd, memory.as_mut_ptr() as *mut c_void, BLOCK, LOCAL_WRITE | REMOTE_WRITE);
            assert!(!mr.is_null());
            let mut init: QpInit = mem::zeroed();
            init.send_cq = cq;
            init.recv_cq = cq;
            init.qp_type = 2; // IBV_QPT_RC
            init.cap = Capabilities { max_send_wr: 16, max_recv_wr: 16, max_send_sge: 1, max_recv_sge: 1, max_inline_data: 0 };
            let qp = ibv_create_qp(pd, &mut init);
            assert!(!qp.is_null());
            Endpoint { context, pd, cq, qp, mr, memory, done: [0; 3] }
        }
    }

    // describe returns the GID, the address of the memory, its remote key and the queue pair number.
    fn describe(&self) -> [u64; 5] {
        let mut gid = [0; 2];
        unsafe {
            assert_eq!(ibv_query_gid(self.context, 1, 0, &mut gid), 0);
            [gid[0], gid[1], self.memory.as_ptr() as u64, (*self.mr).rkey as u64, (*self.qp).qp_num as u64]
        }
    }

    fn connect(&self, peer: &[u64; 5]) {
        unsafe {
            let mut attr: QpAttr = mem::zeroed();
            attr.qp_state = 1; // INIT: state, access flags, P_Key index, port
            attr.port_num = 1;
            attr.qp_access_flags = REMOTE_WRITE as u32;
            assert_eq!(ibv_modify_qp(self.qp, &mut attr, 1 | 1 << 3 | 1 << 4 | 1 << 5), 0);
            let mut attr: QpAttr = mem::zeroed();
            attr.qp_state = 2; // RTR: state, AV, path MTU, RNR timer, RQ PSN, reads and atomics, peer
            attr.path_mtu = 3;
            attr.rq_psn = 17;
            attr.dest_qp_num = peer[4] as u32;
            attr.min_rnr_timer = 12;
            attr.ah_attr.dgid = [peer[0], peer[1]];
            attr.ah_attr.is_global = 1;
            attr.ah_attr.hop_limit = 64;
            attr.ah_attr.port_num = 1;
            assert_eq!(ibv_modify_qp(self.qp, &mut attr, 1 | 1 << 7 | 1 << 8 | 1 << 12 | 1 << 15 | 1 << 17 | 1 << 20), 0);
            let mut attr: QpAttr = mem::zeroed();
            attr.qp_state = 3; // RTS: state, timeout, retries, RNR retries, reads and atomics, SQ PSN
            attr.sq_psn = 17;
            attr.timeout = 14;
            attr.retry_cnt = 7;
            attr.rnr_retry = 7;
            assert_eq!(ibv_modify_qp(self.qp, &mut attr, 1 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 13 | 1 << 16), 0);
        }
    }

    fn element(&self, offset: usize, length: usize) -> Sge {
        assert!(offset + length <= BLOCK);
        Sge { addr: self.memory.as_ptr() as u64 + offset as u64, length: length as u32, lkey: unsafe { (*self.mr).lkey } }
    }

    // send posts a message, or with an address and a key a write.
    fn send(&self, id: u64, offset: usize, length: usize, remote: Option<(u64, u32)>) {
        unsafe {
            let mut sge = self.element(offset, length);
            let mut request: SendRequest = mem::zeroed();
            request.wr_id = id;
            request.sg_list = &mut sge;
            request.num_sge = 1;
            request.opcode = if remote.is_some() { 0 } else { 2 }; // RDMA_WRITE, SEND
            request.send_flags = 2; // signaled
            let (address, key) = remote.unwrap_or((0, 0));
            request.remote_addr = address;
            request.rkey = key;
            let mut bad = ptr::null_mut();
            assert_eq!(((*self.context).post_send)(self.qp, &mut request, &mut bad), 0);
        }
    }

    fn receive(&self, id: u64, offset: usize, length: usize) {
        unsafe {
            let mut sge = self.element(offset, length);
            let mut request = RecvRequest { wr_id: id, next: ptr::null_mut(), sg_list: &mut sge, num_sge: 1 };
            let mut bad = ptr::null_mut();
            assert_eq!(((*self.context).post_recv)(self.qp, &mut request, &mut bad), 0);
        }
    }

    // complete waits for the completion of a work request, which must be a success.
    fn complete(&mut self, id: u64) {
        while self.done[id as usize] == 0 {
            let mut wc: Completion = unsafe { mem::zeroed() };
            let n = unsafe { ((*self.context).poll_cq)(self.cq, 1, &mut wc) };
            assert!(n >= 0, "poll_cq: {}", n);
            if n == 1 {
                assert_eq!(wc.status, 0, "status of work request {}", wc.wr_id);
                self.done[wc.wr_id as usize] += 1;
            }
        }
        self.done[id as usize] -= 1;
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        unsafe {
            assert_eq!(ibv_destroy_qp(self.qp), 0);
            assert_eq!(ibv_dereg_mr(self.mr), 0);
            assert_eq!(ibv_destroy_cq(self.cq), 0);
            assert_eq!(ibv_dealloc_pd(self.pd), 0);
            assert_eq!(ibv_close_device(self.context), 0);
        }
    }
}

fn pattern(round: usize, i: usize) -> u8 {
    (round * 31 + i * 7 + i / 256) as u8
}

const MESSAGE: usize = 4096;

// IDs of work requests.
const RECEIVED: u64 = 1;
const SENT: u64 = 2;

// run plays one side. The client's block arrives in the server's memory before the first message, in order.
fn run(mut to: impl Write, mut from: impl Read, rounds: usize, client: bool) {
    let mut end = Endpoint::open();
    let local = end.describe();
    to.write_all(&local.iter().flat_map(|v| v.to_ne_bytes()).collect::<Vec<u8>>()).unwrap();
    to.flush().unwrap();
    let mut bytes = [0u8; 40];
    from.read_exact(&mut bytes).unwrap();
    let mut peer = [0u64; 5];
    for (i, v) in peer.iter_mut().enumerate() {
        *v = u64::from_ne_bytes(bytes[i * 8..i * 8 + 8].try_into().unwrap());
    }
    end.connect(&peer);
    let mut wait_peer = || {
        to.write_all(&[1]).unwrap();
        to.flush().unwrap();
        from.read_exact(&mut [0u8]).unwrap();
    };
    end.receive(RECEIVED, 0, MESSAGE);
    wait_peer(); // both can receive
    if client {
        for i in 0..BLOCK {
            end.memory[i] = pattern(0, i);
        }
        end.send(SENT, MESSAGE, BLOCK - MESSAGE, Some((peer[2] + MESSAGE as u64, peer[3] as u32)));
        end.complete(SENT);
    }
    for round in 1..=rounds {
        for turn in [client, !client] {
            if turn {
                let sent = BLOCK / 2; // the server has checked its block when it sends
                for i in 0..MESSAGE {
                    end.memory[sent + i] = pattern(round, i);
                }
                end.send(SENT, sent, MESSAGE, None);
                end.complete(SENT);
                continue;
            }
            end.complete(RECEIVED);
            assert!((0..MESSAGE).all(|i| end.memory[i] == pattern(round, i)), "message of round {}", round);
            if !client && round == 1 {
                assert!((MESSAGE..BLOCK).all(|i| end.memory[i] == pattern(0, i)), "block");
            }
            end.receive(RECEIVED, 0, MESSAGE);
        }
    }
    wait_peer(); // a lost acknowledgement is sent again, but not by a process that has ended
    if client {
        println!("{} bytes written, {} messages each way", BLOCK - MESSAGE, rounds);
    }
}

fn main() {
    let args: Vec<String> = env::args().collect();
    let rounds: usize = args[1].parse().unwrap();
    if args.len() > 2 {
        return run(std::io::stdout(), std::io::stdin(), rounds, false);
    }
    let mut child = Command::new(&args[0])
        .args(&[&args[1], "server"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    run(child.stdin.take().unwrap(), child.stdout.take().unwrap(), rounds, true);
    assert!(child.wait().unwrap().success());
}
