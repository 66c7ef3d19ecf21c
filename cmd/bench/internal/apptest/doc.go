// Package apptest has helpers for tests of the applications: golden images, and runs on
// hosts that share no memory.
//
//	require.Equal(t, "edfb08e8d0e5a0c2", apptest.Checksum(picture))
//	apptest.CompareGolden(t, "testdata/blobs.png", picture) // -update writes it
//	err := apptest.RunOnHosts(apptest.TimeoutContext(t), []string{"a", "b"}, []datacutter.Job{a.Job(), b.Job()})
package apptest
