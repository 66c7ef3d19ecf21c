// Package apptest is what the tests of the applications share: golden pictures, and
// runs on hosts that share nothing.
//
//	require.Equal(t, "edfb08e8d0e5a0c2", apptest.Checksum(picture))
//	apptest.CompareGolden(t, "testdata/blobs.png", picture) // -update writes it
//	err := apptest.RunOnHosts(apptest.TimeoutContext(t), []string{"a", "b"}, []datacutter.Job{a.Job(), b.Job()})
package apptest
