// Projects with real dependencies: caches are filled outside, by the host's own registries, and kept for the project.
import type { Project } from "./project.ts";

const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>sum</groupId><artifactId>sum</artifactId><version>1</version>
  <properties>
    <maven.compiler.source>17</maven.compiler.source><maven.compiler.target>17</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.13.2</version><scope>test</scope></dependency>
  </dependencies>
</project>
`;

export const withDependencies: Readonly<Record<string, Project>> = {
  "mvn -o test": {
    needs: "mvn --version",
    files: {
      "pom.xml": pom,
      "src/test/java/SumTest.java":
        "public class SumTest {\n  @org.junit.Test public void sum() { org.junit.Assert.assertEquals(2, 1 + 1); }\n}\n",
    },
    // Maven notes from which mirror a file came, and inside there is none.
    prepare:
      "mvn -q -B -Dmaven.repo.local=$CACHE test && rm -rf target && find $CACHE -name _remote.repositories -delete",
    cache: { name: "maven", place: ".m2/repository" },
    argv: ["mvn", "-o", "-B", "test"],
    says: /Tests run: 1, Failures: 0[\s\S]*BUILD SUCCESS/,
  },
  "npm ci && npm test": {
    needs: "npm --version",
    files: {
      "package.json":
        '{"name":"sum","version":"1.0.0","scripts":{"test":"node test.js"},"dependencies":{"ms":"2.1.3"}}',
      "test.js":
        'require("node:assert").equal(require("ms")("2 days"), 172800000);\nconsole.log("sum is right");\n',
    },
    prepare:
      "npm install --cache $CACHE --no-audit --no-fund && rm -rf node_modules && npm ci --cache $CACHE --no-audit --no-fund && rm -rf node_modules",
    cache: { name: "npm", place: ".npm" },
    argv: ["sh", "-c", "npm ci --offline --no-audit --no-fund && npm test"],
    says: /sum is right/,
  },
  "go test with a module": {
    needs: "go version",
    files: {
      "go.mod": "module sum\n\ngo 1.20\n\nrequire github.com/pkg/errors v0.9.1\n",
      "sum_test.go":
        'package sum\n\nimport (\n\t"testing"\n\n\t"github.com/pkg/errors"\n)\n\nfunc TestSum(t *testing.T) {\n\tif errors.New("two").Error() != "two" {\n\t\tt.Fatal()\n\t}\n}\n',
    },
    // Go's own library is compiled here, once; what the project has changed since then is compiled inside.
    prepare:
      "export GOMODCACHE=$CACHE GOCACHE=$CACHE/built GOFLAGS=-modcacherw; go mod download; go mod tidy; go test ./...; sed -i s/two/one/g sum_test.go",
    cache: { name: "go", place: "go/pkg/mod" },
    argv: ["env", "GOCACHE=/home/agent/go/pkg/mod/built", "go", "test", "./..."],
    says: /^ok\s+sum\s+[0-9.]+s$/m,
  },
  "cargo test with a vendored crate": {
    needs: "cargo --version",
    files: {
      "Cargo.toml":
        '[package]\nname = "sum"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\nitoa = "=1.0.11"\n',
      ".cargo/config.toml":
        '[source.crates-io]\nreplace-with = "vendored"\n[source.vendored]\ndirectory = "vendor"\n',
      "src/lib.rs": '#[test]\nfn sum() {\n    assert_eq!(itoa::Buffer::new().format(1 + 1), "2");\n}\n',
    },
    // The project's settings lead to what is about to be made.
    prepare: "mv .cargo aside && cargo vendor --quiet && mv aside .cargo",
    argv: ["cargo", "test", "--offline"],
    says: /test sum \.\.\. ok/,
  },
  "pytest that the project brings": {
    needs: "python3 --version",
    files: { "test_sum.py": "def test_sum():\n    assert 1 + 1 == 2\n" },
    prepare: "python3 -m pip install --quiet --target deps pytest==8.3.4 tomli exceptiongroup",
    argv: ["sh", "-c", "PYTHONPATH=deps python3 -m pytest -q -p no:cacheprovider test_sum.py"],
    says: /1 passed/,
  },
};
