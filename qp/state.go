package qp

import "github.com/softrnic/softrnic/verbs"

const (
	sReset = verbs.StateReset
	sInit  = verbs.StateInit
	sRTR   = verbs.StateRTR
	sRTS   = verbs.StateRTS
	sSQD   = verbs.StateSQD
	sSQE   = verbs.StateSQE
	sErr   = verbs.StateErr
)

// acceptsPackets reports whether packets are processed in state s.
func acceptsPackets(s verbs.QPState) bool { return s == sRTR || s == sRTS || s == sSQD || s == sSQE }
