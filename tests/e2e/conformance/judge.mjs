// Runs the tests of http-cache-tests through a proxy and judges the results.
//
//   node judge.mjs SUITE reverse PROXY-URL EXCEPTIONS [MARKDOWN]
//   node judge.mjs SUITE forward PROXY-URL ORIGIN-URL EXCEPTIONS
//   node judge.mjs SUITE http2 PROXY-URL EXCEPTIONS            as reverse, by HTTP/2 in clear text
//
// SUITE is the folder of the npm package, EXCEPTIONS the list of tests that need not pass, with
// reasons; one that begins with "[suite]" says that no cache can pass the test and keep to the RFCs,
// one with "[forward]" is for forward mode alone.
// MARKDOWN, when given, is written with every test that did not pass. The last line counts.

import fs from 'fs'
import http from 'http'
import http2 from 'http2'
import path from 'path'

const [suite, mode, proxy, ...rest] = process.argv.slice(2)
const base = mode === 'forward' ? rest.shift() : mode === 'http2' ? await bridge(proxy) : proxy
const [exceptionsFile, markdown] = rest
const load = async name => import(path.resolve(suite, name))

const { runTests, getResults } = await load('client/runner.mjs')
const nodeFetch = (await load('node_modules/node-fetch/lib/index.mjs')).default

// The suite's client speaks HTTP/1.1: a server that sends each request on as HTTP/2, over one connection, and the response
// back as it came.
async function bridge (url) {
  const session = http2.connect(url)
  const ofHttp1 = new Set(['connection', 'host', 'keep-alive', 'transfer-encoding', 'upgrade', 'te'])
  const pairsOf = raw => raw.filter((_, i) => i % 2 === 0).map((name, i) => [name.toLowerCase(), raw[2 * i + 1]])
  const server = http.createServer((request, response) => {
    const head = { ':method': request.method, ':path': request.url, ':authority': request.headers.host }
    for (const [name, value] of pairsOf(request.rawHeaders)) {
      if (!ofHttp1.has(name)) head[name] = head[name] === undefined ? value : [head[name], value].flat()
    }
    const bodiless = request.headers['content-length'] === undefined && request.headers['transfer-encoding'] === undefined
    const stream = session.request(head, { endStream: bodiless })
    if (!bodiless) request.pipe(stream)
    stream.on('headers', interim => { if (interim[':status'] === 103) response.writeEarlyHints({ link: interim.link }) })
    stream.on('response', (fields, _, raw) => {
      response.sendDate = false
      response.writeHead(fields[':status'], pairsOf(raw).filter(([name]) => name[0] !== ':').flat())
      stream.pipe(response)
    })
    stream.on('error', () => response.destroy())
    response.on('close', () => { if (!response.writableFinished) stream.close(http2.constants.NGHTTP2_CANCEL) })
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  server.unref()
  session.unref()
  return `http://127.0.0.1:${server.address().port}`
}

// Connects to the proxy whatever the URL, and names the whole URL in the request line.
class ForwardAgent extends http.Agent {
  addRequest (request, options) {
    const { hostname, port } = new URL(proxy)
    request.path = `http://${options.host}:${options.port}${request.path}`
    super.addRequest(request, { ...options, host: hostname, port })
  }
}
const agent = new ForwardAgent({ keepAlive: true })
const fetch = mode === 'forward' ? (url, init) => nodeFetch(url, { ...init, agent }) : nodeFetch

const suites = [...(await load('tests/index.mjs')).default]
suites.push((await load('tests/surrogate-control.mjs')).default)

const exceptions = new Map()
const impossible = new Set()
for (const line of fs.readFileSync(exceptionsFile, 'utf8').split('\n')) {
  if (line === '' || line.startsWith('#')) continue
  const colon = line.indexOf(': ')
  const reason = line.slice(colon + 2)
  if (reason.startsWith('[forward] ')) {
    if (mode === 'forward') exceptions.set(line.slice(0, colon), reason.slice(10))
    continue
  }
  exceptions.set(line.slice(0, colon), reason.replace('[suite] ', ''))
  if (reason.startsWith('[suite] ')) impossible.add(line.slice(0, colon))
}

await runTests(suites, fetch, false, base)
const results = getResults()

// A test whose precondition failed says nothing.
const verdictOf = test => {
  const result = results[test.id]
  if (result === undefined) return { word: 'not run', why: '' }
  const unmet = (test.depends_on || []).filter(id => results[id] !== true)
  if (unmet.length > 0) return { word: 'not applicable', why: `depends on ${unmet.join(', ')}` }
  if (result === true) return { word: 'pass', why: '' }
  return { word: result[0] === 'Setup' ? 'setup failed' : 'fail', why: result[1] }
}

const rows = []
for (const group of suites) {
  for (const test of group.tests) {
    if (test.browser_only) continue
    rows.push({ ...verdictOf(test), kind: test.kind || 'required', id: test.id, name: test.name, group: group.name })
  }
}

let passed = 0
let failed = 0
const complain = text => { failed++; console.log(`FAIL ${text}`) }
const counts = {}
for (const row of rows) {
  const count = counts[row.kind] = counts[row.kind] || { pass: 0, applicable: 0, possible: 0 }
  if (row.word !== 'not applicable') count.applicable++
  if (row.word !== 'not applicable' && !impossible.has(row.id)) count.possible++
  if (row.word === 'pass') { count.pass++; passed++ }
  const excused = exceptions.has(row.id)
  if (row.kind !== 'check' && row.word !== 'pass' && row.word !== 'not applicable' && !excused) {
    complain(`${row.kind} ${row.id}: ${row.why}`)
  }
  if (row.word === 'pass' && excused) complain(`${row.id} passes now: take it off ${exceptionsFile}`)
}
for (const id of exceptions.keys()) {
  if (!rows.some(row => row.id === id)) complain(`${id} is no test of the suite: take it off ${exceptionsFile}`)
}

for (const kind of Object.keys(counts).sort()) {
  console.log(`${kind}: ${counts[kind].pass} of ${counts[kind].applicable} that apply, ${counts[kind].possible} of them possible`)
}

if (markdown) {
  const cell = text => text.replace(/\|/g, '\\|').replace(/</g, '&lt;')
  const table = (kind, reason) => rows
    .filter(row => row.kind === kind && row.word !== 'pass')
    .map(row => `| ${row.id} | ${cell(row.name)} | ${cell(reason(row))} |`).join('\n')
  const reason = row => exceptions.get(row.id) || row.why
  const version = JSON.parse(fs.readFileSync(path.join(suite, 'package.json'))).version
  const summary = Object.keys(counts).sort()
    .map(kind => `| ${kind} | ${counts[kind].pass} | ${counts[kind].applicable} | ${counts[kind].possible} |`).join('\n')
  fs.writeFileSync(markdown, `# Conformance

\`tests/e2e/conformance/run.sh\` runs the public suite http-cache-tests ${version} (npm) through Retort in reverse mode, and
writes this page. The script also runs the suite by HTTP/2, where the same required and optimal tests pass, and through
Retort as a forward proxy. The same tests pass there, except for those of Surrogate-Control, which is for reverse proxies
only. It runs with \`policy all { set_cookie = store }\`, as four required tests ask for the cookies of a stored response
(RFC 9111, 3.1). Without that, only the client whose request fetched a response gets its cookies.

| kind | passed | of those that apply | of those that a cache can pass if it follows the RFCs |
|---|---|---|---|
${summary}

The last column leaves out tests that ask for something that the RFCs forbid or advise against, and tests whose own
messages contradict themselves. The tables below give the reason for each.

## Where editions of the suite differ

The suite's repository (github.com/http-tests/cache-tests) has a newer edition than npm, of July 2026. Retort passes all
its required tests except headers-store-Transfer-Encoding, for the reason below. Where the two editions differ, Retort
does what the RFC says:

| tests | npm edition | newest edition | RFC | Retort |
|---|---|---|---|---|
| age-parse-nonnumeric, -negative, -float | stale | fresh: the field is ignored | 9111, 5.1: "a cache SHOULD ignore the field" | as the newest |
| age-parse-prefix-twoline, -dup-0, -dup-0-twoline, -dup-old | stale | fresh: the first member counts | 9111, 5.1: "SHOULD use the first member of the field value, discarding subsequent ones" | as the newest |
| age-parse-parameter, -numeric-parameter | stale | only asks | 9111, 5.1: the same as for a value that is no integer | the field is ignored |
| stale-close-\* | a cache's own 502 fails | a cache's own 502 passes | 9111, 5.2.2.2: "if the cache is disconnected, the cache MUST generate an error response rather than reuse the stale response" | as the newest |
| cdn-\* (RFC 9213) | none | 24 tests of CDN-Cache-Control | 9213, 2.1: a field that does not parse "MUST be ignored by the cache" | all that are required pass, in reverse mode |
| surrogate-\* | 21 tests | none | | pass, in reverse mode |

## Required tests that do not pass

| test | what it asks | why not |
|---|---|---|
${table('required', reason)}

## Optimal tests that do not pass

| test | what it asks | why not |
|---|---|---|
${table('optimal', reason)}

## Checks that answer "no"

These tests only ask what a cache does; there is no right answer. The checks that are not listed answer "yes".

| test | what it asks | what was seen |
|---|---|---|
${table('check', row => row.why)}
`)
}
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed === 0 ? 0 : 1)
