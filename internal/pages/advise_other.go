//go:build unix && !linux && !race

package pages

func disableHugePages([]byte) {}
