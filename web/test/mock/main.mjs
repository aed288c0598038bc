// npm run mock [-- PORT [MACHINES]]: the mock hub by hand.
import { startMock } from './server.mjs';

const mock = await startMock({ port: Number(process.argv[2] ?? 8400), machines: Number(process.argv[3] ?? 64) });
console.log(mock.url);
