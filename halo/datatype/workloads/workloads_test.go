package workloads

import (
	"fmt"
	"strings"
	"testing"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/internal/test"
)

func all(t *testing.T) []Workload {
	t.Helper()
	workloads := test.Must(All())(t)
	return workloads
}

func TestWorkloadsHaveOneName(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range all(t) {
		if seen[w.String()] {
			t.Errorf("%v is there twice", w)
		}
		seen[w.String()] = true
	}
	if len(seen) < 300 {
		t.Errorf("only %d workloads", len(seen))
	}
}

// Both sides fit in their arrays and have the workload's size and the same signature; the receive side does
// not overlap.
func TestSidesFit(t *testing.T) {
	for _, w := range all(t) {
		for name, s := range map[string]Side{"sent": w.Send, "received": w.Recv} {
			l := test.Must(datatype.Commit(s.Type, s.Count))(t)
			if s.Origin+l.TrueLB() < 0 || s.Origin+l.TrueUB() > s.Array || l.Size() != w.Bytes || l.Overlaps() {
				t.Errorf("%v %s: %v from %d in an array of %d; overlaps %t", w, name, l, s.Origin, s.Array, l.Overlaps())
			}
		}
		sent, received := w.Send.Type.Signature().Times(int64(w.Send.Count)), w.Recv.Type.Signature().Times(int64(w.Recv.Count))
		if sent != received {
			t.Errorf("%v sends %v, receives %v", w, sent, received)
		}
	}
}

// If both sides are in one array, ghosts do not overlap owned elements.
func TestGhostsAreNotSent(t *testing.T) {
	for _, w := range all(t) {
		if w.Suite != "shoc" && !strings.HasPrefix(w.Name, "NAS") && w.Name != "halo" {
			continue
		}
		both := test.Must(datatype.Struct([]int{1, 1}, []int64{w.Send.Origin, w.Recv.Origin}, []*datatype.Type{w.Send.Type, w.Recv.Type}))(t)
		if l, err := datatype.Commit(both, 1); err != nil || l.Overlaps() {
			t.Errorf("%v: %v overlaps, %v", w, l, err)
		}
	}
}

// The formulas of the papers and sources.
func TestBytes(t *testing.T) {
	want := map[string]int64{
		"ddtbench/NAS_MG_x/d1=34,d2=18,d3=18":                           8 * 16 * 16,
		"ddtbench/NAS_MG_y/d1=130,d2=66,d3=66":                          8 * 128 * 64,
		"ddtbench/NAS_MG_z/d1=514,d2=258,d3=258":                        8 * 512 * 256,
		"ddtbench/NAS_LU_x/d2=33,d3=33":                                 8 * 5 * 33,
		"ddtbench/NAS_LU_y/d2=1020,d3=1020":                             8 * 5 * 1020,
		"ddtbench/MILC_su3_zd/d2=16,d3=16,d4=16,d5=16":                  24 * 16 * 16 * 16,
		"ddtbench/MILC_su3_zd/d2=8,d3=8,d4=8,d5=16":                     24 * 8 * 8 * 16,
		"ddtbench/SPECFEM3D_oc/array=12857,n=877":                       4 * 877,
		"ddtbench/SPECFEM3D_cm/array1=39929,n1=1957,array2=1225,n2=245": 12 * (1957 + 245),
		"ddtbench/SPECFEM3D_mt/d=7600":                                  12 * 7600,
		"ddtbench/LAMMPS_full/d=3534,n=3062":                            64 * 3062,
		"ddtbench/LAMMPS_full/d=1907,n=1662":                            64 * 1662,
		"ddtbench/LAMMPS_atomic/d=4084,n=243":                           48 * 243,
		"ddtbench/LAMMPS_atomic/d=1217,n=114":                           48 * 114,
		"ddtbench/FFT2D/n=1536,ranks=8":                                 16 * 192 * 192,
		"tempi/2d-vector/bytes=4194304,block=32":                        4 << 20,
		"tempi/2d-subarray/bytes=1024,block=1":                          1 << 10,
		"tempi/halo/x=+1,y=+0,z=+0":                                     64 * 3 * 256 * 256,
		"tempi/halo/x=-1,y=+1,z=-1":                                     64 * 3 * 3 * 3,
		"wu/V/n=2048":                                                   8 * 2048 * 2048,
		"wu/T/n=1024":                                                   8 * 1024 * 1025 / 2,
		"wu/stairs/n=1024,nb=256":                                       8 * 256 * (1024 + 768 + 512 + 256),
		"wu/transpose/n=4096":                                           8 * 4096 * 4096,
		"jenkins/vector-512/blocks=128,block=8":                         1 << 10,
		"jenkins/subarray-4d/edge=16":                                   8 * 16 * 16 * 16 * 16,
		"jenkins/struct/count=1024":                                     17 << 10,
		"jenkins/contention/blocks=262144,block=64":                     16 << 20,
		"hand/hvector/blocks=32,block=16":                               32 * 16,
		"hand/subarray-4d-inner/extent=128":                             4 * 8 * 8 * 8 * 64,
		"hand/indexed_block/blocks=1024,block=4":                        4 << 10,
		"hand/particle-simple/count=131072":                             84 * 131072,
		"hand/particle-complex/count=131072":                            28 * 131072,
		"shoc/west/n=512,type=float64":                                  8 * 514,
		"hacc/vblock/rank=5,cells=1024":                                 52 + 4*(3*6912+3*1024+1024+1024+27*1024+82534+1024+15872),
	}
	for _, w := range all(t) {
		if bytes, ok := want[w.String()]; ok && w.Bytes != bytes {
			t.Errorf("%v has %d bytes, not %d", w, w.Bytes, bytes)
		}
		delete(want, w.String())
	}
	for name := range want {
		t.Errorf("%s is missing", name)
	}
}

func TestWRFBytes(t *testing.T) {
	n := 0
	for _, w := range all(t) {
		if !strings.HasPrefix(w.Name, "WRF") {
			continue
		}
		n++
		var d1, d3, s1, s3 int64
		test.Must(fmt.Sscanf(w.Params, "d1=%d,d3=%d,s1=%d,s3=%d", &d1, &d3, &s1, &s3))(t)
		if want := 4 * (4*s1*s3 + 5*s1*65*s3); w.Bytes != want || w.Send.Array != 4*(4*d1*d3+7*d1*65*d3) {
			t.Errorf("%v has %d bytes, not %d, in an array of %d", w, w.Bytes, want, w.Send.Array)
		}
	}
	if n != 16 {
		t.Errorf("%d exchanges, not 16", n)
	}
}

// Two descriptions of the same data commit to the same layout.
func TestDescriptionsAgree(t *testing.T) {
	twins := map[string]string{
		"WRF_x_sa": "WRF_x_vec", "WRF_y_sa": "WRF_y_vec", "2d-vector": "2d-subarray", "vector-512": "indexed", "indexed": "idxblock",
	}
	layouts := map[string]*datatype.Layout{}
	for _, w := range all(t) {
		l := test.Must(datatype.Commit(w.Send.Type, w.Send.Count))(t)
		layouts[w.String()] = l
	}
	pairs := 0
	for _, w := range all(t) {
		twin, ok := twins[w.Name]
		if !ok {
			continue
		}
		pairs++
		other := layouts[w.Suite+"/"+twin+"/"+w.Params]
		if l := layouts[w.String()]; other == nil || !l.Equal(other) {
			t.Errorf("%v is %v, as %s %v", w, l, twin, other)
		}
	}
	if pairs < 50 {
		t.Errorf("only %d pairs", pairs)
	}
}

// Regular suites have few pieces, irregular ones have lists.
func TestForms(t *testing.T) {
	pieces := map[string]int{
		"NAS_MG_x": 1, "NAS_MG_y": 1, "NAS_MG_z": 1, "NAS_LU_x": 1, "NAS_LU_y": 1, "MILC_su3_zd": 1, "SPECFEM3D_mt": 1, "FFT2D": 1,
		"WRF_x_sa": 3, "WRF_y_vec": 3, "SPECFEM3D_oc": 0, "SPECFEM3D_cm": 0, "LAMMPS_full": 0, "T": 0, "V": 1, "halo": 1, "subarray-4d": 1,
		"struct": 1, "particle-complex": 2, "vblock": 0,
	}
	for _, w := range all(t) {
		want, ok := pieces[w.Name]
		if !ok {
			continue
		}
		l := test.Must(datatype.Commit(w.Send.Type, w.Send.Count))(t)
		if len(l.Pieces()) != want || l.Strided() != (want > 0) {
			t.Errorf("%v is %v", w, l)
		}
	}
}

func TestShuffledListsAreFixed(t *testing.T) {
	if got, want := fmt.Sprint(shuffled(10, 4)), fmt.Sprint(shuffled(10, 4)); got != want {
		t.Errorf("%s, then %s", got, want)
	}
	seen := map[int]bool{}
	for _, i := range shuffled(100, 60) {
		if i < 0 || i >= 100 || seen[i] {
			t.Fatalf("%d is outside or there twice", i)
		}
		seen[i] = true
	}
}

func TestMakersKeepTheirError(t *testing.T) {
	m := &maker{suite: "none"}
	m.both("broken", "", filled(m.vector(-1, 1, 1, datatype.Byte), 1), 0)
	if _, err := m.result(); err == nil || !strings.HasPrefix(err.Error(), "workloads: none: datatype: vector") {
		t.Errorf("%v", err)
	}
}

func ExampleDDTBench() {
	workloads, err := DDTBench()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range workloads[:3] {
		fmt.Println(w, w.Bytes, "bytes:", w.Send.Type)
	}
	// Output:
	// ddtbench/NAS_MG_x/d1=34,d2=18,d3=18 2048 bytes: hvector(16, 1, 4896, vector(16, 1, 34, float64))
	// ddtbench/NAS_MG_y/d1=34,d2=18,d3=18 4096 bytes: vector(16, 32, 612, float64)
	// ddtbench/NAS_MG_z/d1=34,d2=18,d3=18 4096 bytes: vector(16, 32, 34, float64)
}
