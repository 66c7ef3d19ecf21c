package dropin_test

import (
	"fmt"
	"path/filepath"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/dropin"
)

func ExampleLibraries_Changes() {
	libs := dropin.Libraries{Dir: "/opt/softrnic"}
	for _, c := range libs.Changes(nil, "", dropin.Settings{Devices: 2}) {
		if c.Name == "LD_PRELOAD" || c.Name == "SOFTRNIC_DEVICES" {
			fmt.Println(c.Name + "=" + filepath.ToSlash(c.Value))
		}
	}
	// Output:
	// LD_PRELOAD=/opt/softrnic/libsoftrnic-preload.so
	// SOFTRNIC_DEVICES=2
}
