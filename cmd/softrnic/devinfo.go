package main

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/verbs/uverbs"
)

type devinfoFlags struct {
	name          string
	port          int
	list, verbose bool
}

func (a *app) devinfoCommand() *cobra.Command {
	var f devinfoFlags
	c := &cobra.Command{
		Use:   "devinfo",
		Short: "Show a device as ibv_devinfo does",
		Long: "Opens a device, at the address of --addr or SOFTRNIC_ADDR, and shows its attributes in\n" +
			"the format of ibv_devinfo(1), with the same flags. --list also names the kernel's devices,\n" +
			"as values of --device. `softrnic stat` shows the devices of other processes.",
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return a.runDevinfo(f) },
	}
	c.Flags().StringVarP(&f.name, "ib-dev", "d", "", "show the device of this name only")
	c.Flags().IntVarP(&f.port, "ib-port", "i", 0, "show this port only (default all)")
	c.Flags().BoolVarP(&f.list, "list", "l", false, "show the names of the devices only")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "show all attributes")
	return c
}

func (a *app) runDevinfo(f devinfoFlags) error {
	dev, err := a.openDefault()
	if err != nil {
		return err
	}
	defer dev.Close()
	switch {
	case f.name != "" && f.name != dev.Name():
		return fmt.Errorf("IB device %q not found; the device is %s", f.name, dev.Name())
	case f.port < 0 || f.port > dev.QueryDevice().PhysPortCnt:
		return usageErrorf("--ib-port %d: this adapter has one port, 1", f.port)
	case f.list:
		return a.listDevices(dev)
	}
	l, err := describeDevice(dev, f.port, f.verbose)
	if err != nil {
		return err
	}
	if a.json {
		return a.writeJSON(l.object)
	}
	fmt.Fprint(a.stdout, l.text.String())
	return nil
}

// listDevices writes the name of the open device and those of the other kind: softrnic's devices
// exist while they are open.
func (a *app) listDevices(dev verbs.Device) error {
	kernel, err := uverbs.Devices()
	if err != nil {
		return err
	}
	names := []string{dev.Name()}
	if a.device != "" {
		names = nil // it is one of the kernel's
	}
	for _, name := range kernel {
		names = append(names, kernelPrefix+name)
	}
	if a.json {
		return a.writeJSON(names)
	}
	plural := ""
	if len(names) != 1 {
		plural = "s"
	}
	fmt.Fprintf(a.stdout, "%d HCA%s found:\n\t%s\n\n", len(names), plural, strings.Join(names, "\n\t"))
	return nil
}

// describeDevice returns the listing of ibv_devinfo for one port, or for all (0).
func describeDevice(dev verbs.Device, port int, verbose bool) (*listing, error) {
	l := newListing()
	_, l.softrnic = dev.(*rnic.Device)
	l.writeDevice(dev.Name(), dev.QueryDevice(), verbose)
	for p := 1; p <= dev.QueryDevice().PhysPortCnt; p++ {
		if port != 0 && port != p {
			continue
		}
		attr, err := dev.QueryPort(p)
		if err != nil {
			return nil, err
		}
		var gids []verbs.GIDEntry
		for i := range attr.GIDTableLen {
			gid, err := dev.QueryGID(p, i)
			if err != nil {
				return nil, err
			}
			gids = append(gids, gid)
		}
		l.writePort(p, attr, gids, verbose)
	}
	return l, nil
}

// A listing has the format of ibv_devinfo (rdma-core, libibverbs/examples/devinfo.c): one
// attribute a line, its label after one tab for the device and three for a port, its value in a
// fixed column. It collects the same attributes for JSON.
type listing struct {
	text     strings.Builder
	object   map[string]any
	softrnic bool // show the capabilities, which package verbs does not report for devices of the kernel
}

func newListing() *listing { return &listing{object: map[string]any{}} }

// Columns of values, in characters with tabs at every eighth.
const (
	deviceColumn = 40
	portColumn   = 48
)

// A section writes attributes of one indentation.
type section struct {
	text   *strings.Builder
	object map[string]any
	indent string
	column int
}

// writeValue writes an attribute whose text is its value.
func (s section) writeValue(label string, value any) { s.writeAttr(label, value, fmt.Sprint(value)) }

// writeAttr writes an attribute with a text for its value.
func (s section) writeAttr(label string, value any, text string) {
	s.object[label] = value
	s.writeLine(label, text)
}

// writeLine writes a label and a text, separated by tabs up to the column.
func (s section) writeLine(label, text string) {
	at := 8*len(s.indent) + len(label) + 1
	tabs := max(1, (s.column-at+7)/8)
	fmt.Fprintf(s.text, "%s%s:%s%s\n", s.indent, label, strings.Repeat("\t", tabs), text)
}

// writeDevice writes the attributes of a device. Attributes of features that no softrnic device
// has are 0, as with rdma_rxe.
func (l *listing) writeDevice(name string, a verbs.DeviceAttr, verbose bool) {
	l.object["hca_id"] = name
	fmt.Fprintf(&l.text, "hca_id:\t%s\n", name)
	s := section{&l.text, l.object, "\t", deviceColumn}
	s.writeAttr("transport", "InfiniBand", "InfiniBand (0)")
	s.writeValue("fw_ver", a.FWVer)
	s.writeValue("node_guid", formatGUID(a.NodeGUID))
	s.writeValue("sys_image_guid", formatGUID(a.SysImageGUID))
	s.writeAttr("vendor_id", a.VendorID, fmt.Sprintf("0x%04x", a.VendorID))
	s.writeValue("vendor_part_id", a.VendorPartID)
	s.writeAttr("hw_ver", a.HWVer, fmt.Sprintf("0x%X", a.HWVer))
	s.writeValue("phys_port_cnt", a.PhysPortCnt)
	if !verbose {
		return
	}
	const pageSizes = 0xfffffffffffff000 // any from 4096 up: nothing here depends on pages
	s.writeAttr("max_mr_size", a.MaxMRSize, fmt.Sprintf("0x%x", a.MaxMRSize))
	s.writeAttr("page_size_cap", uint64(pageSizes), fmt.Sprintf("0x%x", uint64(pageSizes)))
	s.writeValue("max_qp", a.MaxQP)
	s.writeValue("max_qp_wr", a.MaxQPWR)
	var flags uint64
	if l.softrnic {
		flags = l.writeCapabilities(s)
	}
	s.writeValue("max_sge", a.MaxSGE)
	s.writeValue("max_sge_rd", a.MaxSGERd)
	s.writeValue("max_cq", a.MaxCQ)
	s.writeValue("max_cqe", a.MaxCQE)
	s.writeValue("max_mr", a.MaxMR)
	s.writeValue("max_pd", a.MaxPD)
	s.writeValue("max_qp_rd_atom", a.MaxQPRdAtom)
	s.writeValue("max_ee_rd_atom", 0)
	s.writeValue("max_res_rd_atom", a.MaxQPRdAtom*a.MaxQP)
	s.writeValue("max_qp_init_rd_atom", a.MaxQPInitRdAtom)
	s.writeValue("max_ee_init_rd_atom", 0)
	s.writeAttr("atomic_cap", a.AtomicCap.String(), fmt.Sprintf("%v (%d)", a.AtomicCap, a.AtomicCap))
	for _, label := range []string{"max_ee", "max_rdd"} {
		s.writeValue(label, 0)
	}
	s.writeValue("max_mw", a.MaxMW)
	for _, label := range []string{"max_raw_ipv6_qp", "max_raw_ethy_qp"} {
		s.writeValue(label, 0)
	}
	s.writeValue("max_mcast_grp", a.MaxMcastGrp)
	s.writeValue("max_mcast_qp_attach", a.MaxQP)
	s.writeValue("max_total_mcast_qp_attach", a.MaxQP)
	s.writeValue("max_ah", a.MaxAH)
	s.writeValue("max_fmr", 0)
	s.writeValue("max_srq", a.MaxSRQ)
	if a.MaxSRQ > 0 {
		s.writeValue("max_srq_wr", a.MaxSRQWR)
		s.writeValue("max_srq_sge", a.MaxSRQSGE)
	}
	s.writeValue("max_pkeys", a.MaxPKeys)
	s.writeValue("local_ca_ack_delay", a.LocalCAAckDelay)
	if l.softrnic {
		l.writeUnsupported(s, flags)
	}
}

// deviceCaps are the flags of enum ibv_device_cap_flags of every softrnic device.
var deviceCaps = []struct {
	bit  int
	name string
}{
	{1, "BAD_PKEY_CNTR"}, {2, "BAD_QKEY_CNTR"}, {7, "CURR_QP_STATE_MOD"}, {11, "SYS_IMAGE_GUID"}, {12, "RC_RNR_NAK_GEN"},
	{13, "SRQ_RESIZE"}, {17, "MEM_WINDOW"}, {21, "MEM_MGT_EXTENSIONS"}, {24, "MEM_WINDOW_TYPE_2B"},
}

// writeCapabilities writes the capabilities and returns their flags.
func (l *listing) writeCapabilities(s section) (flags uint64) {
	names := []string{}
	for _, c := range deviceCaps {
		flags |= 1 << c.bit
		names = append(names, c.name)
	}
	s.writeAttr("device_cap_flags", names, fmt.Sprintf("0x%08x", flags))
	for _, name := range names {
		fmt.Fprintf(&l.text, "\t\t\t\t\t%s\n", name)
	}
	return flags
}

// writeUnsupported writes the attributes of features that no softrnic device has: on-demand
// paging, segmentation, hashing, pacing and tag matching, and the clock. Their columns are irregular.
func (l *listing) writeUnsupported(s section, flags uint64) {
	l.text.WriteString("\tgeneral_odp_caps:\n")
	for _, transport := range []string{"rc", "uc", "ud", "xrc"} {
		fmt.Fprintf(&l.text, "\t%s_odp_caps:\n\t\t\t\t\tNO SUPPORT\n", transport)
	}
	l.text.WriteString("\tcompletion timestamp_mask:\t\t\t0xffffffffffffffff\n\thca_core_clock:\t\t\t1000000kHZ\n") // nanoseconds
	s.writeLine("device_cap_flags_ex", fmt.Sprintf("0x%X", flags|1<<38|1<<40))
	l.text.WriteString("\t\t\t\t\tFLUSH_GLOBAL\n\t\t\t\t\tATOMIC_WRITE\n")
	l.text.WriteString("\ttso_caps:\n\t\tmax_tso:\t\t\t0\n\trss_caps:\n" +
		"\t\tmax_rwq_indirection_tables:\t\t\t0\n\t\tmax_rwq_indirection_table_size:\t\t\t0\n" +
		"\t\trx_hash_function:\t\t\t\t0x0\n\t\trx_hash_fields_mask:\t\t\t\t0x0\n")
	s.writeLine("max_wq_type_rq", "0")
	l.text.WriteString("\tpacket_pacing_caps:\n\t\tqp_rate_limit_min:\t0kbps\n\t\tqp_rate_limit_max:\t0kbps\n\ttag matching not supported\n")
	s.writeValue("num_comp_vectors", 1)
}

// writePort writes the attributes of a port.
func (l *listing) writePort(number int, a verbs.PortAttr, gids []verbs.GIDEntry, verbose bool) {
	object := map[string]any{"port": number}
	ports, _ := l.object["ports"].([]any)
	l.object["ports"] = append(ports, object)
	fmt.Fprintf(&l.text, "\t\tport:\t%d\n", number)
	s := section{&l.text, object, "\t\t\t", portColumn}
	s.writeAttr("state", a.State.String(), fmt.Sprintf("%v (%d)", a.State, a.State))
	s.writeAttr("max_mtu", a.MaxMTU.Bytes(), fmt.Sprintf("%v (%d)", a.MaxMTU, a.MaxMTU))
	s.writeAttr("active_mtu", a.ActiveMTU.Bytes(), fmt.Sprintf("%v (%d)", a.ActiveMTU, a.ActiveMTU))
	s.writeValue("sm_lid", a.SMLID)
	s.writeValue("port_lid", a.LID)
	s.writeAttr("port_lmc", a.LMC, fmt.Sprintf("0x%02x", a.LMC))
	s.writeValue("link_layer", a.LinkLayer)
	if verbose {
		s.writeAttr("max_msg_sz", a.MaxMsgSize, fmt.Sprintf("0x%x", a.MaxMsgSize))
		s.writeLine("port_cap_flags", "0x00000000")
		s.writeLine("port_cap_flags2", "0x0000")
		s.writeAttr("max_vl_num", a.MaxVLNum, fmt.Sprintf("%s (%d)", vlNames[a.MaxVLNum], a.MaxVLNum))
		s.writeAttr("bad_pkey_cntr", a.BadPKeyCntr, fmt.Sprintf("0x%x", a.BadPKeyCntr))
		s.writeAttr("qkey_viol_cntr", a.QKeyViolCntr, fmt.Sprintf("0x%x", a.QKeyViolCntr))
		s.writeValue("sm_sl", 0)
		s.writeValue("pkey_tbl_len", a.PKeyTableLen)
		s.writeValue("gid_tbl_len", a.GIDTableLen)
		s.writeValue("subnet_timeout", 0)
		s.writeValue("init_type_reply", 0)
		s.writeAttr("active_width", a.ActiveWidth, fmt.Sprintf("%sX (%d)", widthNames[a.ActiveWidth], a.ActiveWidth))
		s.writeAttr("active_speed", a.ActiveSpeed, fmt.Sprintf("%s (%d)", speedNames[a.ActiveSpeed], a.ActiveSpeed))
		s.writeAttr("phys_state", a.PhysState, fmt.Sprintf("%s (%d)", physStateNames[a.PhysState], a.PhysState))
		l.writeGIDs(object, gids)
	}
	l.text.WriteByte('\n')
}

func (l *listing) writeGIDs(object map[string]any, gids []verbs.GIDEntry) {
	list := []map[string]any{}
	for _, g := range gids {
		if g.GID.IsZero() {
			continue
		}
		text := formatGID(g.GID)
		fmt.Fprintf(&l.text, "\t\t\tGID[%3d]:\t\t%s, %v\n", g.Index, text, g.Type)
		list = append(list, map[string]any{"index": g.Index, "gid": text, "type": g.Type.String()})
	}
	object["gids"] = list
}

// formatGID formats the GID of a RoCE v2 port as ibv_devinfo does: an IPv6 address, possibly a
// mapped IPv4 one.
func formatGID(g verbs.GID) string { return netip.AddrFrom16(g).String() }

// Names of codes of struct ibv_port_attr (ibv_query_port(3)).
var (
	vlNames        = map[uint8]string{1: "1", 2: "2", 3: "4", 4: "8", 5: "15"}
	widthNames     = map[uint8]string{1: "1", 2: "4", 4: "8", 8: "12", 16: "2"}
	speedNames     = map[uint8]string{1: "2.5 Gbps", 2: "5.0 Gbps", 4: "10.0 Gbps", 8: "10.0 Gbps", 16: "14.0 Gbps", 32: "25.0 Gbps", 64: "50.0 Gbps", 128: "100.0 Gbps"}
	physStateNames = map[uint8]string{1: "SLEEP", 2: "POLLING", 3: "DISABLED", 4: "PORT_CONFIGURATION TRAINNING", 5: "LINK_UP", 6: "LINK_ERROR_RECOVERY", 7: "PHY TEST"}
)

// formatGUID formats a GUID as ibv_devinfo does.
func formatGUID(g uint64) string {
	return fmt.Sprintf("%04x:%04x:%04x:%04x", uint16(g>>48), uint16(g>>32), uint16(g>>16), uint16(g))
}
