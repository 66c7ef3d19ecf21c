package qpstate_test

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/qpstate"
	"github.com/softrnic/softrnic/verbs"
)

func Example() {
	err := qpstate.CheckTransition(verbs.UC, verbs.StateInit, verbs.StateRTR, verbs.AttrState|verbs.AttrAV|verbs.AttrPathMTU|verbs.AttrDestQPN)
	fmt.Println(err)
	fmt.Println(qpstate.SupportsOpcode(verbs.UC, verbs.WRRDMARead))
	// Output:
	// UC queue pair from INIT to RTR also needs RQ_PSN
	// false
}
