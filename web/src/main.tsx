import { render } from 'preact';
import { Poller } from './api/poller';
import { Resources } from './api/resources';
import { App } from './app';
import { ServicesContext } from './hooks';
import { Announcer, announce } from './parts/live';
import './style/base.css';
import './style/layout.css';
import './style/table.css';
import './style/parts.css';

const services = { poller: new Poller(), resources: new Resources(), say: announce };
services.poller.start();

const root = document.getElementById('app');
if (root) {
  render(
    <ServicesContext.Provider value={services}>
      <App />
      <Announcer />
    </ServicesContext.Provider>,
    root,
  );
}
