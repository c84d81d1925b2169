// Hooks as they are written for Metacontroller: JSON in, JSON out, nothing else. The ideas are those of its
// examples: a CatSet of pods with names of their own, a Service per pod, blue and green.
const http = require('http');

const pod = (name, image, labels) => ({
  apiVersion: 'v1', kind: 'Pod', metadata: { name, labels }, spec: { containers: [{ name: 'main', image }] },
});
const service = (name, selector) => ({
  apiVersion: 'v1', kind: 'Service', metadata: { name }, spec: { selector, ports: [{ port: 80, protocol: 'TCP' }] },
});
const isReady = (one) => ((one.status || {}).conditions || []).some((c) => c.type === 'Ready' && c.status === 'True');

const hooks = {
  // Pods one after the other; when the set goes, from the last to the first.
  '/catset': ({ parent, children, finalizing }) => {
    const { replicas, image } = parent.spec;
    const pods = Object.values(children['Pod.v1']);
    const wanted = finalizing ? Math.max(pods.length - 1, 0) : replicas;
    const names = [...Array(wanted).keys()].map((at) => `${parent.metadata.name}-${at}`);
    return {
      status: { replicas: pods.length, ready: pods.filter(isReady).length },
      children: names.map((name) => pod(name, image, { set: parent.metadata.name, pod: name })),
      finalized: finalizing && pods.length === 0,
    };
  },
  // A Service for each pod of the set.
  '/service-per-pod': ({ parent }) => ({
    status: { services: parent.spec.replicas },
    children: [...Array(parent.spec.replicas).keys()].map((at) => {
      const name = `${parent.metadata.name}-${at}`;
      return service(name, { pod: name });
    }),
  }),
  // The new colour is made beside the old one; the Service turns to it once it is ready, then the old one goes.
  '/bluegreen': ({ parent, children }) => {
    const { name } = parent.metadata;
    const { image } = parent.spec;
    const active = (parent.status || {}).active || 'blue';
    const pods = children['Pod.v1'];
    const current = pods[`${name}-${active}`];
    const other = active === 'blue' ? 'green' : 'blue';
    const imageOf = (one) => one.spec.containers[0].image;
    const colour = (which, img) => pod(`${name}-${which}`, img, { app: name, colour: which });
    if (!current || imageOf(current) === image) {
      return { status: { active }, children: [colour(active, image), service(name, { app: name, colour: active })] };
    }
    const next = pods[`${name}-${other}`];
    if (next && imageOf(next) === image && isReady(next)) {
      return { status: { active: other }, children: [colour(other, image), service(name, { app: name, colour: other })] };
    }
    return {
      status: { active },
      children: [colour(active, imageOf(current)), colour(other, image), service(name, { app: name, colour: active })],
    };
  },
};

let trouble = 0;
const server = http.createServer((request, response) => {
  let body = '';
  request.on('data', (chunk) => { body += chunk; });
  request.on('end', () => {
    if (request.url === '/trouble') { trouble = Number(body); response.end(); return; }
    if (trouble) { response.writeHead(trouble); response.end('the cat sleeps'); return; }
    const answer = hooks[request.url](JSON.parse(body));
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(answer));
  });
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
