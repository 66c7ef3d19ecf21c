package main

/*
#include "engine.h"
*/
import "C"

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// Environment variables of programs that use the engine, beside those of package rnic.
const (
	envDevices = "SOFTRNIC_DEVICES" // number of devices, 1 unless set
	envShare   = "SOFTRNIC_SHARE"   // 0 to be refused an address that another process has
	envCapture = "SOFTRNIC_CAPTURE" // pcapng file, as rnic.Options.Capture
)

// maxDevices bounds SOFTRNIC_DEVICES.
const maxDevices = 16

// devices are the open devices of the process, softrnic0 first. They are opened once.
var devices []*device

// A device is an adapter with the contexts that the program opened on it.
type device struct {
	*rnic.Device

	interfaceIndex int // of the network interface with its address

	mu       sync.Mutex
	contexts map[*deviceContext]struct{}
}

// A deviceContext is a result of ibv_open_device: asynchronous events of its objects go there.
type deviceContext struct {
	device *device
	c      unsafe.Pointer // struct context
}

// Close closes the objects of the context and removes it from its device.
func (c *deviceContext) Close() error {
	closeObjects(c)
	c.device.mu.Lock()
	defer c.device.mu.Unlock()
	delete(c.device.contexts, c)
	owners.removeContext(c.c)
	return nil
}

// go_open_devices opens the devices and returns their number. A device that cannot be opened is
// reported once, and the program finds fewer devices.
//
//export go_open_devices
func go_open_devices() C.int {
	defer reportPanic()
	count, err := strconv.Atoi(cmp.Or(os.Getenv(envDevices), "1"))
	if err != nil || count < 0 || count > maxDevices {
		fmt.Fprintf(os.Stderr, "softrnic: %s=%s: want a number of devices from 0 to %d\n", envDevices, os.Getenv(envDevices), maxDevices)
		return 0
	}
	removeStalePaths()
	for i := range count {
		d, err := openDevice(i)
		if err != nil {
			fmt.Fprintf(os.Stderr, "softrnic: softrnic%d: %v\n", i, err)
			break
		}
		devices = append(devices, d)
	}
	return C.int(len(devices))
}

func openDevice(index int) (*device, error) {
	o := rnic.Options{Name: "softrnic" + strconv.Itoa(index)}
	if text := os.Getenv(rnic.EnvAddr); text != "" && index > 0 {
		o.Addrs = rotateAddresses(text, index)
	}
	// Peers of programs in C learn a GID and no port, so a second process at a given address
	// must share its port.
	o.Share = os.Getenv(rnic.EnvAddr) != "" && os.Getenv(envShare) == ""
	if path := os.Getenv(envCapture); path != "" {
		o.Capture = capturePath(path, index)
	}
	adapter, err := rnic.Open(o)
	if err != nil {
		return nil, err
	}
	closeInChildren(adapter)
	if os.Getenv(rnic.EnvDebug) == "" {
		_ = adapter.ServeDebug(rnic.DebugAuto) // not requested, so its failure is ignored
	}
	d := &device{Device: adapter, contexts: make(map[*deviceContext]struct{}), interfaceIndex: interfaceOf(adapter)}
	go d.deliverEvents()
	return d, nil
}

// rotateAddresses returns the list of addresses with the one of a device's number first, so that each device has one of
// its own.
func rotateAddresses(list string, index int) string {
	entries := strings.Split(list, ",")
	first := index % len(entries)
	return strings.Join(slices.Concat(entries[first:], entries[:first]), ",")
}

// interfaceOf returns the index of the interface that has the device's address, or 0.
func interfaceOf(adapter *rnic.Device) int {
	interfaces, err := net.Interfaces()
	if err != nil {
		return 0
	}
	addr := net.IP(adapter.Addr().Addr().AsSlice())
	for _, i := range interfaces {
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && (n.IP.Equal(addr) || addr.IsLoopback() && n.Contains(addr)) {
				return i.Index
			}
		}
	}
	return 0
}

// deliverEvents hands asynchronous events to the context of the object, and those of the
// port and the device to all contexts.
func (d *device) deliverEvents() {
	defer reportPanic()
	for {
		ev, err := d.AsyncEvent(context.Background())
		if err != nil {
			return
		}
		var object any
		switch {
		case ev.QP != nil:
			object = ev.QP
		case ev.CQ != nil:
			object = ev.CQ
		case ev.SRQ != nil:
			object = ev.SRQ
		default:
			d.mu.Lock()
			for c := range d.contexts {
				C.raise_async(c.c, nil, C.int(ev.Type))
			}
			d.mu.Unlock()
			continue
		}
		owners.use(object, func(o owner) { C.raise_async(o.context, o.c, C.int(ev.Type)) })
	}
}

// go_close_devices closes the devices when the process ends, which completes their captures.
//
//export go_close_devices
func go_close_devices() {
	defer reportPanic()
	closeManagers()
	for _, d := range devices {
		d.Device.Close() //nolint:errcheck // the process ends
	}
	removePaths()
}

//export go_device_guid
func go_device_guid(index C.int) C.uint64_t {
	defer reportPanic()
	return C.uint64_t(devices[index].QueryDevice().NodeGUID)
}

//export go_open_context
func go_open_context(index C.int, c unsafe.Pointer, handle *C.uint32_t) C.int {
	defer reportPanic()
	d := devices[index]
	ctx := &deviceContext{device: d, c: c}
	if errno := addObject(ctx, ctx, handle); errno != 0 {
		return errno
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.contexts[ctx] = struct{}{}
	return 0
}

//export go_close_context
func go_close_context(handle C.uint32_t) { go_destroy(handle) }

// contextOf returns the context of a handle.
func contextOf(handle C.uint32_t) (*deviceContext, C.int) {
	if c, ok := lookup[*deviceContext](handle); ok {
		return c, 0
	}
	return nil, errnoOf(errStale)
}

//export go_query_device
func go_query_device(handle C.uint32_t, attr *C.struct_ibv_device_attr) C.int {
	defer reportPanic()
	c, errno := contextOf(handle)
	if errno != 0 {
		return errno
	}
	d := c.device.QueryDevice()
	version := unsafe.Slice((*byte)(unsafe.Pointer(&attr.fw_ver)), len(attr.fw_ver)-1)
	copy(version, d.FWVer)
	attr.node_guid = C.__be64(bigEndian64(d.NodeGUID))
	attr.sys_image_guid = C.__be64(bigEndian64(d.SysImageGUID))
	attr.max_mr_size = C.uint64_t(d.MaxMRSize)
	attr.page_size_cap = 0xfffff000 // any page size, as the pages of memory do not matter
	attr.vendor_id = C.uint32_t(d.VendorID)
	attr.vendor_part_id = C.uint32_t(d.VendorPartID)
	attr.hw_ver = C.uint32_t(d.HWVer)
	attr.max_qp = C.int(d.MaxQP)
	attr.max_qp_wr = C.int(d.MaxQPWR)
	attr.device_cap_flags = C.IBV_DEVICE_RC_RNR_NAK_GEN | C.IBV_DEVICE_SRQ_RESIZE |
		C.IBV_DEVICE_PORT_ACTIVE_EVENT | C.IBV_DEVICE_SYS_IMAGE_GUID | C.IBV_DEVICE_N_NOTIFY_CQ | C.IBV_DEVICE_MEM_WINDOW | C.IBV_DEVICE_MEM_WINDOW_TYPE_2B
	attr.max_sge = C.int(d.MaxSGE)
	attr.max_sge_rd = C.int(d.MaxSGERd)
	attr.max_cq = C.int(d.MaxCQ)
	attr.max_cqe = C.int(d.MaxCQE)
	attr.max_mr = C.int(d.MaxMR)
	attr.max_pd = C.int(d.MaxPD)
	attr.max_qp_rd_atom = C.int(d.MaxQPRdAtom)
	attr.max_res_rd_atom = C.int(min(d.MaxQPRdAtom*d.MaxQP, 1<<31-1))
	attr.max_qp_init_rd_atom = C.int(d.MaxQPInitRdAtom)
	attr.atomic_cap = uint32(d.AtomicCap)
	attr.max_mw = C.int(d.MaxMW)
	attr.max_mcast_grp = C.int(d.MaxMcastGrp)
	attr.max_mcast_qp_attach = C.int(d.MaxQP)
	attr.max_total_mcast_qp_attach = C.int(min(d.MaxMcastGrp*d.MaxQP, 1<<31-1))
	attr.max_ah = C.int(d.MaxAH)
	attr.max_srq = C.int(d.MaxSRQ)
	attr.max_srq_wr = C.int(d.MaxSRQWR)
	attr.max_srq_sge = C.int(d.MaxSRQSGE)
	attr.max_pkeys = C.uint16_t(d.MaxPKeys)
	attr.local_ca_ack_delay = C.uint8_t(d.LocalCAAckDelay)
	attr.phys_port_cnt = C.uint8_t(d.PhysPortCnt)
	return 0
}

//export go_query_port
func go_query_port(handle C.uint32_t, port C.int, attr *C.struct_ibv_port_attr) C.int {
	defer reportPanic()
	c, errno := contextOf(handle)
	if errno != 0 {
		return errno
	}
	p, err := c.device.QueryPort(int(port))
	if err != nil {
		return errnoOf(err)
	}
	attr.state = uint32(p.State)
	attr.max_mtu = uint32(p.MaxMTU)
	attr.active_mtu = uint32(p.ActiveMTU)
	attr.gid_tbl_len = C.int(p.GIDTableLen)
	attr.port_cap_flags = C.IBV_PORT_CM_SUP
	attr.max_msg_sz = C.uint32_t(p.MaxMsgSize)
	attr.pkey_tbl_len = C.uint16_t(p.PKeyTableLen)
	attr.bad_pkey_cntr = C.uint32_t(p.BadPKeyCntr)
	attr.qkey_viol_cntr = C.uint32_t(p.QKeyViolCntr)
	attr.max_vl_num = C.uint8_t(p.MaxVLNum)
	attr.active_width = C.uint8_t(p.ActiveWidth)
	attr.active_speed = C.uint8_t(p.ActiveSpeed)
	attr.phys_state = C.uint8_t(p.PhysState)
	attr.link_layer = C.IBV_LINK_LAYER_ETHERNET
	attr.flags = C.IBV_QPF_GRH_REQUIRED
	return 0
}

//export go_query_gid
func go_query_gid(handle C.uint32_t, port C.int, index C.int, gid *C.uint8_t, interfaceIndex *C.uint32_t) C.int {
	defer reportPanic()
	c, errno := contextOf(handle)
	if errno != 0 {
		return errno
	}
	entry, err := c.device.QueryGID(int(port), int(index))
	if err != nil {
		return errnoOf(err)
	}
	*(*verbs.GID)(unsafe.Pointer(gid)) = entry.GID
	*interfaceIndex = C.uint32_t(c.device.interfaceIndex)
	return 0
}
