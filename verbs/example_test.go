package verbs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// Two processes exchange endpoints as text and connect. The adapter of the example is a fake;
// rnic.Open returns a real one.
func ExampleConnect() {
	dev := fakeDevice{
		port: verbs.PortAttr{ActiveMTU: verbs.MTU4096, UDPPort: 4791, RecvBuffer: 212992},
		gid:  verbs.GIDFromAddr(netip.MustParseAddr("127.0.0.1")),
	}
	qp := &fakeQP{num: 0x11, typ: verbs.RC}

	local, err := verbs.LocalEndpoint(dev, qp, 12345)
	if err != nil {
		panic(err)
	}
	fmt.Println("tell the peer:", local)

	var remote verbs.Endpoint // pasted from the peer's terminal
	if err := remote.UnmarshalText([]byte("gid=127.0.0.2,qpn=0x22,psn=0x1000,mtu=1024")); err != nil {
		panic(err)
	}
	if err := verbs.Connect(qp, local, remote, verbs.ConnectOptions{AckTimeout: time.Second}); err != nil {
		panic(err)
	}
	fmt.Println(qp.State(), "with MTU", qp.attr.PathMTU)
	// Output:
	// tell the peer: gid=127.0.0.1,port=4791,qpn=0x11,psn=0x3039,mtu=4096,buffer=212992
	// RTS with MTU 1024
}

func ExampleActivateUD() {
	qp := &fakeQP{num: 0x12, typ: verbs.UD}
	if err := verbs.ActivateUD(qp, 0x11111111, 0); err != nil {
		panic(err)
	}
	fmt.Println(qp.State())
	// Output: RTS
}

func ExampleEndpoint_json() {
	gid, _ := verbs.ParseGID("10.0.0.1")
	object, _ := json.Marshal(verbs.Endpoint{GID: gid, QPN: 17, PSN: 12345, MTU: verbs.MTU1024})
	fmt.Println(string(object))
	// Output: {"gid":"0000:0000:0000:0000:0000:ffff:0a00:0001","qpn":17,"psn":12345,"mtu":"1024"}
}

func ExampleWCStatus() {
	for _, s := range []verbs.WCStatus{verbs.WCSuccess, verbs.WCRNRRetryExcErr, 99} {
		fmt.Println(s)
		fmt.Println("   ", verbs.Describe(s))
	}
	// Output:
	// SUCCESS
	//     the request is complete
	// RNR_RETRY_EXC_ERR
	//     the peer had no receive posted after RNRRetry retries; post receives before the sender starts, post more of them, or set RNRRetry to 7 (no limit)
	// WCStatus(99)
	//     WCStatus(99) is not a value that the verbs define
}

// A transition without a required attribute returns an error that names it.
func ExampleTransitionError() {
	qp := &fakeQP{num: 0x11, typ: verbs.UC, state: verbs.StateInit}
	err := qp.Modify(verbs.QPAttr{State: verbs.StateRTR, PathMTU: verbs.MTU1024}, verbs.AttrState|verbs.AttrPathMTU)
	fmt.Println(err)

	var transition *verbs.TransitionError
	fmt.Println(errors.As(err, &transition), errors.Is(err, verbs.ErrInvalid))
	// Output:
	// verbs: QP 0x11: modify: UC queue pair from INIT to RTR also needs AV|RQ_PSN|DEST_QPN
	// true true
}

func ExampleWC_Err() {
	wc := verbs.WC{WRID: 7, QPN: 0x11, Status: verbs.WCRetryExcErr, Failure: &verbs.Failure{
		Event: "no acknowledgement for 67 ms", Opcode: "RDMA_WRITE", PSN: 12345, Retries: 7,
		Cause: "nothing listens at 10.0.0.2:4791",
	}}
	fmt.Println(wc.Status)
	fmt.Println(wc.Failure)
	var failed *verbs.CompletionError
	fmt.Println(errors.As(wc.Err(), &failed), failed.WRID)
	// Output:
	// RETRY_EXC_ERR
	// no acknowledgement for 67 ms (RDMA_WRITE, PSN 12345), after 7 retries: nothing listens at 10.0.0.2:4791
	// true 7
}

func ExampleAccessFlags() {
	access := verbs.AccessLocalWrite | verbs.AccessRemoteWrite
	fmt.Println(access)
	fmt.Println(verbs.Describe(access))
	// Output:
	// LOCAL_WRITE|REMOTE_WRITE
	// the adapter may write to the memory: receives, read results, old values of atomics; peers may write
}
