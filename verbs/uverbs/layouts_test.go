package uverbs

import (
	_ "embed"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

//go:embed testdata/layouts.txt
var kernelLayouts string // a test in the guest has no files

// A layout maps a structure of the kernel to one of this package. Members are pairs of the kernel's
// name and a field here.
type layout struct {
	ours    any
	skipped uintptr // bytes at the beginning that ours lacks: the address of the response
	added   uintptr // bytes of the provider at the end of ours
	missing uintptr // bytes at the end that ours lacks: fields of later kernels
	members string
}

var layouts = map[string]layout{
	"ib_uverbs_cmd_hdr":          {ours: commandHeader{}, members: "command command in_words inWords out_words outWords"},
	"ib_uverbs_get_context_resp": {ours: getContextResponse{}, members: "async_fd asyncFD"},
	"ib_uverbs_query_device_resp": {ours: queryDeviceResponse{}, members: "node_guid nodeGUID max_mr_size maxMRSize vendor_id vendorID " +
		"max_qp_wr maxQPWR max_cqe maxCQE max_qp_rd_atom maxQPReads atomic_cap atomicCap max_mw maxMW max_mcast_grp maxMcastGroups " +
		"max_ah maxAH max_srq_sge maxSRQSGE max_pkeys maxPKeys phys_port_cnt ports"},
	"ib_uverbs_query_port": {ours: queryPort{}, skipped: 8, members: "port_num port"},
	"ib_uverbs_query_port_resp": {ours: queryPortResponse{}, members: "max_msg_sz maxMessage gid_tbl_len gids lid lid state state " +
		"active_mtu activeMTU active_width activeWidth link_layer linkLayer"},
	"ib_uverbs_alloc_pd_resp":            {ours: allocPDResponse{}},
	"ib_uverbs_reg_mr":                   {ours: registerMR{}, skipped: 8, members: "start start length length hca_va iova pd_handle pd access_flags access"},
	"ib_uverbs_reg_mr_resp":              {ours: registerMRResponse{}, members: "lkey lkey rkey rkey"},
	"ib_uverbs_alloc_mw":                 {ours: allocMW{}, skipped: 8, members: "pd_handle pd mw_type kind"},
	"ib_uverbs_alloc_mw_resp":            {ours: allocMWResponse{}, members: "rkey rkey"},
	"ib_uverbs_create_comp_channel_resp": {ours: createChannelResponse{}, members: "fd fd"},
	"ib_uverbs_create_cq":                {ours: createCQ{}, skipped: 8, members: "user_handle userHandle cqe depth comp_vector vector comp_channel channel"},
	"ib_uverbs_create_cq_resp":           {ours: createCQResponse{}, added: 16, members: "cqe depth"},
	"ib_uverbs_resize_cq":                {ours: resizeCQ{}, skipped: 8, members: "cq_handle handle cqe depth"},
	"ib_uverbs_resize_cq_resp":           {ours: resizeCQResponse{}, added: 16, members: "cqe depth"},
	"ib_uverbs_destroy_cq":               {ours: destroyBody{}, skipped: 8, members: "cq_handle handle"},
	"ib_uverbs_destroy_cq_resp":          {ours: destroyCQResponse{}, members: "comp_events_reported completions async_events_reported asyncs"},
	"ib_uverbs_destroy_qp":               {ours: destroyBody{}, skipped: 8},
	"ib_uverbs_destroy_qp_resp":          {ours: destroyResponse{}},
	"ib_uverbs_destroy_srq":              {ours: destroyBody{}, skipped: 8},
	"ib_uverbs_destroy_srq_resp":         {ours: destroyResponse{}},
	"ib_uverbs_req_notify_cq":            {ours: notifyCQ{}, members: "cq_handle handle solicited_only solicited"},
	"ib_uverbs_create_ah":                {ours: createAH{}, skipped: 8, members: "user_handle userHandle pd_handle pd attr attr"},
	"ib_uverbs_ah_attr": {ours: ahAttr{}, members: "grh.dgid dgid grh.flow_label flowLabel grh.sgid_index sgidIndex grh.traffic_class trafficClass " +
		"sl sl is_global global port_num port"},
	"ib_uverbs_create_ah_resp": {ours: createAHResponse{}, added: 8},
	"ib_uverbs_create_qp": {ours: createQP{}, skipped: 8, members: "user_handle userHandle pd_handle pd srq_handle srq max_send_wr maxSendWR " +
		"max_inline_data maxInline sq_sig_all signalAll qp_type kind is_srq hasSRQ"},
	"ib_uverbs_create_qp_resp": {ours: createQPResponse{}, added: 32, members: "qpn number max_inline_data maxInline"},
	"ib_uverbs_qp_dest":        {ours: qpDestination{}, members: "flow_label flowLabel sgid_index sgidIndex sl sl is_global global port_num port"},
	"ib_uverbs_modify_qp": {ours: modifyQP{}, members: "qp_handle handle attr_mask mask rq_psn recvPSN qp_access_flags access pkey_index pkey qp_state state " +
		"path_mtu mtu en_sqd_async_notify notifySQD max_dest_rd_atomic maxPeerReads min_rnr_timer rnrTimer port_num port timeout timeout rnr_retry rnrRetries"},
	"ib_uverbs_query_qp": {ours: queryQP{}, skipped: 8, members: "qp_handle handle attr_mask mask"},
	"ib_uverbs_query_qp_resp": {ours: queryQPResponse{}, members: "max_send_wr maxSendWR qkey qkey dest_qp_num peer qp_access_flags access qp_state state " +
		"sq_draining draining min_rnr_timer rnrTimer rnr_retry rnrRetries"},
	"ib_uverbs_post_send":        {ours: postSend{}, skipped: 8, members: "qp_handle handle wqe_size size"},
	"ib_uverbs_post_send_resp":   {ours: postSendResponse{}},
	"ib_uverbs_attach_mcast":     {ours: multicast{}, members: "qp_handle handle mlid mlid"},
	"ib_uverbs_create_srq":       {ours: createSRQ{}, skipped: 8, members: "pd_handle pd srq_limit limit"},
	"ib_uverbs_create_srq_resp":  {ours: createSRQResponse{}, added: 24, members: "max_wr maxWR srqn number"},
	"ib_uverbs_modify_srq":       {ours: modifySRQ{}, added: 8, members: "attr_mask mask srq_limit limit"},
	"ib_uverbs_query_srq":        {ours: destroyBody{}, skipped: 8},
	"ib_uverbs_query_srq_resp":   {ours: querySRQResponse{}, members: "srq_limit limit"},
	"ib_uverbs_async_event_desc": {ours: asyncEvent{}, members: "event_type kind"},
	"ib_uverbs_comp_event_desc":  {ours: completionEvent{}},
	"rdma_ucm_cmd_hdr":           {ours: cmHeader{}, members: "cmd command in in out out"},
	"rdma_ucm_create_id":         {ours: cmCreateID{}, members: "uid uid response response ps space qp_type kind"},
	"rdma_ucm_create_id_resp":    {ours: cmID{}},
	"rdma_ucm_destroy_id":        {ours: cmDestroyID{}, members: "response response id id"},
	"rdma_ucm_destroy_id_resp":   {ours: cmDestroyIDResponse{}},
	"rdma_ucm_bind":              {ours: cmBind{}, members: "addr_size size addr addr"},
	"rdma_ucm_resolve_addr": {ours: cmResolveAddr{}, members: "timeout_ms timeout src_size sourceSize dst_size destinationSize src_addr sourceAddr " +
		"dst_addr destinationAddr"},
	"rdma_ucm_resolve_route":   {ours: cmResolveRoute{}, members: "timeout_ms timeout"},
	"rdma_ucm_query":           {ours: cmQuery{}, members: "id id option option"},
	"rdma_ucm_query_addr_resp": {ours: cmQueryAddrResponse{}, missing: 8, members: "src_addr source dst_addr destination"},
	"rdma_ucm_conn_param": {ours: cmConnParam{}, members: "qp_num number private_data private private_data_len privateLength srq srq " +
		"responder_resources served initiator_depth issued flow_control flowControl retry_count retries rnr_retry_count rnrRetries valid set"},
	"rdma_ucm_connect":      {ours: cmConnect{}, missing: 8, members: "conn_param param id id"},
	"rdma_ucm_listen":       {ours: cmListen{}, members: "backlog backlog"},
	"rdma_ucm_accept":       {ours: cmAccept{}, missing: 8, members: "uid uid conn_param param id id"},
	"rdma_ucm_reject":       {ours: cmReject{}, members: "private_data_len privateLength reason reason private_data private"},
	"rdma_ucm_init_qp_attr": {ours: cmInitQPAttr{}, members: "id id qp_state state"},
	"ib_uverbs_qp_attr": {ours: cmQPAttr{}, members: "qp_attr_mask mask path_mtu mtu rq_psn recvPSN sq_psn sendPSN dest_qp_num peer " +
		"qp_access_flags access ah_attr destination pkey_index pkey max_rd_atomic maxReads max_dest_rd_atomic maxPeerReads " +
		"min_rnr_timer rnrTimer port_num port timeout timeout retry_cnt retries rnr_retry rnrRetries"},
	"rdma_ucm_get_event":  {ours: cmGetEvent{}},
	"rdma_ucm_event_resp": {ours: cmEvent{}, missing: 8, members: "uid uid id id event event status status param.conn param"},
	"rdma_ucm_set_option": {ours: cmSetOption{}, members: "optval value level level optname option optlen length"},
	"mminfo":              {ours: queueInfo{}, members: "size size"},
	"rxe_send_wqe": {ours: sendElement{}, members: "wr.opcode opcode wr.send_flags flags wr.ex immOrKey wr.wr request status status state state " +
		"iova remote dma data"},
	"rxe_dma_info": {ours: dataInfo{}, members: "resid remaining num_sge count sge_offset offset"},
	"rxe_recv_wqe": {ours: recvElement{}, members: "dma data"},
	"rxe_sge":      {ours: verbs.SGE{}, members: "length Length lkey LKey"},
	"ib_uverbs_wc": {ours: completionElement{}, members: "status status opcode opcode vendor_err vendorErr byte_len bytes ex immOrKey qp_num qpn " +
		"src_qp source wc_flags flags pkey_index pkey"},
}

// requests are the members of the union in struct rxe_send_wr, which begins at sendElement.request.
var requests = map[string]layout{
	"rdma":   {ours: remoteRequest{}, members: "rkey rkey"},
	"atomic": {ours: atomicRequest{}, members: "compare_add compareAdd swap swap rkey rkey"},
	"ud":     {ours: datagramRequest{}, members: "remote_qkey qkey ah_num ah"},
	"mw":     {ours: windowRequest{}, members: "length length mr_lkey lkey mw_rkey rkey rkey newKey access access"},
}

// providerSizes are the sizes of rxe's parts of responses and commands.
var providerSizes = map[string]uintptr{
	"rxe_create_ah_resp": 8, "rxe_create_cq_resp": 16, "rxe_resize_cq_resp": 16, "rxe_create_qp_resp": 32, "rxe_create_srq_resp": 24, "rxe_modify_srq_cmd": 8,
	"ib_uverbs_send_wr": requestSize, "rxe_queue_buf": ringElements,
}

// commandNumbers are the commands by the kernel's names.
var commandNumbers = map[string]int{
	"GET_CONTEXT": cmdGetContext, "QUERY_DEVICE": cmdQueryDevice, "QUERY_PORT": cmdQueryPort, "ALLOC_PD": cmdAllocPD,
	"DEALLOC_PD": cmdDeallocPD, "CREATE_AH": cmdCreateAH, "DESTROY_AH": cmdDestroyAH, "REG_MR": cmdRegMR,
	"DEREG_MR": cmdDeregMR, "ALLOC_MW": cmdAllocMW, "DEALLOC_MW": cmdDeallocMW, "CREATE_COMP_CHANNEL": cmdCreateChannel,
	"CREATE_CQ": cmdCreateCQ, "RESIZE_CQ": cmdResizeCQ, "DESTROY_CQ": cmdDestroyCQ, "REQ_NOTIFY_CQ": cmdReqNotifyCQ,
	"CREATE_QP": cmdCreateQP, "QUERY_QP": cmdQueryQP, "MODIFY_QP": cmdModifyQP, "DESTROY_QP": cmdDestroyQP,
	"POST_SEND": cmdPostSend, "ATTACH_MCAST": cmdAttachMcast, "DETACH_MCAST": cmdDetachMcast, "CREATE_SRQ": cmdCreateSRQ,
	"CM_CREATE_ID": cmCmdCreateID, "CM_DESTROY_ID": cmCmdDestroyID, "CM_RESOLVE_ROUTE": cmCmdResolveRoute, "CM_CONNECT": cmCmdConnect,
	"CM_LISTEN": cmCmdListen, "CM_ACCEPT": cmCmdAccept, "CM_REJECT": cmCmdReject, "CM_DISCONNECT": cmCmdDisconnect,
	"CM_INIT_QP_ATTR": cmCmdInitQPAttr, "CM_GET_EVENT": cmCmdGetEvent, "CM_SET_OPTION": cmCmdSetOption, "CM_QUERY": cmCmdQuery,
	"CM_BIND": cmCmdBind, "CM_RESOLVE_ADDR": cmCmdResolveAddr,
	"MODIFY_SRQ": cmdModifySRQ, "QUERY_SRQ": cmdQuerySRQ, "DESTROY_SRQ": cmdDestroySRQ,
}

// TestLayouts compares structures and commands with testdata/layouts.txt, which a C program has written.
func TestLayouts(t *testing.T) {
	sizes, checked, commands := 0, 0, 0
	for line := range strings.Lines(kernelLayouts) {
		var name string
		var offset, size uintptr
		if n, _ := fmt.Sscanf(line, "command %s %d", &name, &size); n == 2 {
			require.EqualValues(t, size, commandNumbers[name], line)
			commands++
			continue
		}
		if n, _ := fmt.Sscanf(line, "struct %s %d", &name, &size); n == 2 {
			sizes++
			if l, ok := layouts[name]; ok {
				require.Equal(t, size, l.skipped+reflect.TypeOf(l.ours).Size()-l.added+l.missing, line)
			} else {
				require.Equal(t, size, providerSizes[name], line)
			}
			continue
		}
		_, err := fmt.Sscanf(line, "%s %d %d", &name, &offset, &size)
		require.NoError(t, err, line)
		structure, member, _ := strings.Cut(name, ".")
		if structure == "rxe_queue_buf" {
			require.Contains(t, []uintptr{ringMask, ringProducer, ringConsumer}, offset)
			continue
		}
		l := layouts[structure]
		if structure == "rxe_send_wr" {
			part, rest, _ := strings.Cut(strings.TrimPrefix(member, "wr."), ".")
			l, member = requests[part], rest
			l.skipped = unsafe.Offsetof(sendElement{}.request)
		}
		f, ok := findField(l, member)
		require.True(t, ok, "no field for %s", name)
		require.Equal(t, offset, l.skipped+f.Offset, line)
		require.Equal(t, size, f.Type.Size(), line)
		checked++
	}
	require.Equal(t, len(layouts)+len(providerSizes), sizes)
	require.Equal(t, len(commandNumbers), commands)
	require.Greater(t, checked, 130)
}

// findField returns the field of a kernel's member.
func findField(l layout, member string) (reflect.StructField, bool) {
	pairs := strings.Fields(l.members)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] == member {
			return reflect.TypeOf(l.ours).FieldByName(pairs[i+1])
		}
	}
	return reflect.StructField{}, false
}
